-- read
-- Also of a tenant that has no row, because nothing was set for it and nothing counted.
select x.tenant, q.runs, q.bytes, q.schedules, q.streams, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered,
  (select count(*) from tape.runs r where r.tenant = x.tenant and r.counted and r.ended_at is null) as open_runs,
  (select count(*) from tape.schedules s where s.tenant = x.tenant) as all_schedules
from (select cast(:tenant as text) as tenant) x left join tape.quotas q on q.tenant = x.tenant left join tape.quotas d on d.tenant = ''

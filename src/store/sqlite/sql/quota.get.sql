-- read
-- Also of a tenant that has no row, because nothing was set for it and nothing counted.
select x.tenant, q.runs, q.bytes, q.schedules, q.streams, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered,
  (select count(*) from runs r where r.tenant = x.tenant and r.counted = 1 and r.ended_at is null) as open_runs,
  (select count(*) from schedules s where s.tenant = x.tenant) as all_schedules
from (select :tenant as tenant) x left join quotas q on q.tenant = x.tenant left join quotas d on d.tenant = ''

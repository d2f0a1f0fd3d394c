-- read
-- By tenant; the default comes first.
select q.tenant, q.runs, q.bytes, q.schedules, q.streams, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered,
  (select count(*) from tape.runs r where r.tenant = q.tenant collate "default" and r.counted and r.ended_at is null) as open_runs,
  (select count(*) from tape.schedules s where s.tenant = q.tenant collate "default") as all_schedules
from tape.quotas q left join tape.quotas d on d.tenant = ''
where q.tenant >= :above and (:above = '' or q.tenant > :above) order by q.tenant limit :limit

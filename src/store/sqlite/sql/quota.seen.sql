-- read
select q.tenant, q.runs, q.bytes, q.schedules, q.streams, q.runs_used, q.runs_at, q.bytes_used, d.runs as default_runs, d.bytes as default_bytes, d.schedules as default_schedules, d.streams as default_streams, d.metered, d.metered_at, :at as at
from quotas q left join quotas d on d.tenant = ''
where q.tenant = :tenant

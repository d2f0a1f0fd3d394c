-- read
-- Runs of these workflows that could go on and that nobody has taken for a while. Of each queue the oldest thousand are
-- counted: enough to say who is missing.
select w.workflow, d.runs + h.runs as runs, tape.now_ms() - least(d.since, h.since) as lag_ms
from (select distinct json_array_elements_text(:workflows::json) as workflow) w
cross join lateral (select count(*) as runs, min(x.due_at) as since from (
  select l.due_at from tape.leases l where l.wants = 'recovery' and l.tenant = :tenant and l.workflow = w.workflow
    and l.due_at <= (select tape.now_ms()) - :min_lag_ms::bigint and not l.paused order by l.due_at limit 1000) x) d
cross join lateral (select count(*) as runs, min(l.expires_at) as since from tape.leases l
  where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant and l.workflow = w.workflow
    and l.expires_at <= (select tape.now_ms()) - :min_lag_ms::bigint) h
where d.runs + h.runs > 0 order by w.workflow

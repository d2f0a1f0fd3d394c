-- read
-- Runs of these workflows that could go on and that nobody has taken for a while. Of each queue the oldest thousand are
-- counted: enough to say who is missing.
select x.workflow, x.due + x.held as runs, :now - min(coalesce(x.due_since, x.held_since), coalesce(x.held_since, x.due_since)) as lag_ms
from (select w.value as workflow,
  (select count(*) from (select 1 from leases where wants = 'recovery' and tenant = :tenant and workflow = w.value
    and due_at <= :now - :min_lag_ms and paused = 0 limit 1000)) as due,
  (select due_at from leases where wants = 'recovery' and tenant = :tenant and workflow = w.value
    and due_at <= :now - :min_lag_ms and paused = 0 order by due_at limit 1) as due_since,
  (select count(*) from leases indexed by leases_held where owner is not null and kind <> 'name' and tenant = :tenant
    and workflow = w.value and expires_at <= :now - :min_lag_ms) as held,
  (select min(expires_at) from leases indexed by leases_held where owner is not null and kind <> 'name' and tenant = :tenant
    and workflow = w.value and expires_at <= :now - :min_lag_ms) as held_since
  from json_each(:workflows) w) x
where x.due + x.held > 0 order by x.workflow

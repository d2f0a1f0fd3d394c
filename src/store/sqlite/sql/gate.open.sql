-- read
-- Named, because the planner takes the index of all gates for as good: a tenant has answered most of its gates.
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers
  from gates indexed by gates_open where tenant = :tenant and status = 'OPEN' and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, run, pos limit :limit

-- read
-- IS NOT DISTINCT FROM keeps the planner from the order of the tenant's other gates.
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers from tape.gates where run = :run and tenant is not distinct from :tenant and (not :open or status || '' = 'OPEN')
  and (opened_at, run, pos) > (:after_at, :after_run, :after_pos)
order by opened_at, pos limit :limit

-- read
-- IS NOT DISTINCT FROM keeps the planner from the order of the tenant's other gates.
select run, pos, tenant, name, status, binds, payload, value, opened_at, approvers, approvals from tape.gates where run = :run and tenant is not distinct from :tenant and (not :open or status || '' = 'OPEN')
order by opened_at, pos limit :limit

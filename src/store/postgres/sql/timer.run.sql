-- read
-- IS NOT DISTINCT FROM keeps the planner from the order of the tenant's other timers.
select run, pos, purpose, tenant, status, due_at from tape.timers where run = :run and tenant is not distinct from :tenant order by due_at, pos limit :limit

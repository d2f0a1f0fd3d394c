-- read
-- The newest caps of the tenant's runs, with whether each has ended.
select b.run, b.unit, b.cap, b.reserved, b.spent, r.id as run_id, r.workflow, r.phase, l.owner as lease_owner, l.wants as lease_wants, r.ended_at
from (select run, unit, cap, reserved, spent from budgets where tenant = :tenant order by run desc limit :limit) b
  cross join runs r on r.journal = b.run cross join leases l on l.journal = b.run

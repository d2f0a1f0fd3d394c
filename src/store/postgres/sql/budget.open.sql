-- read
-- The newest caps of the tenant's runs, with whether each has ended.
select b.run, b.unit, b.cap, b.reserved, b.spent, r.id as run_id, r.workflow, r.phase, l.owner as lease_owner, l.wants as lease_wants, r.ended_at
from (select run, unit, cap, reserved, spent from tape.budgets where tenant = :tenant order by run desc limit :limit) b
  cross join lateral (select r.id, r.workflow, r.phase, r.ended_at from tape.runs r where r.journal = b.run offset 0) r
  cross join lateral (select l.owner, l.wants from tape.leases l where l.journal = b.run offset 0) l

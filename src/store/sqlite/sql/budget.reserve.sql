-- fenced
-- The condition is the cap: parallel calls queue on this row and cannot overrun it. Only runs of the same tree draw.
update budgets set reserved = reserved + :amount
where run = :run and tenant = :tenant and unit = :unit and reserved + spent + :amount <= cap
  and (select b.root from runs b where b.journal = :by) = (select o.root from runs o where o.journal = :run)

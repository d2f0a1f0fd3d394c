-- fenced
-- The condition is the cap: parallel calls queue on this row and cannot overrun it. Only runs of the same tree draw.
update tape.budgets set reserved = reserved + :amount
where run = :run and tenant is not distinct from :tenant and unit = :unit and reserved + spent + :amount <= cap
  and (select b.root from tape.runs b where b.journal = :by) = (select o.root from tape.runs o where o.journal = :run)

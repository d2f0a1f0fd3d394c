-- fenced
-- No cap here: what was bought was bought, and the record of it must not be refused. The next reservation is.
update tape.budgets set reserved = reserved - :reserved, spent = spent + :spent
where run = :run and tenant is not distinct from :tenant and unit = :unit and reserved >= :reserved
  and (select b.root from tape.runs b where b.journal = :by) = (select o.root from tape.runs o where o.journal = :run)

-- fenced
-- No cap here: what was bought was bought, and the record of it must not be refused. The next reservation is.
update budgets set reserved = reserved - :reserved, spent = spent + :spent
where run = :run and tenant = :tenant and unit = :unit and reserved >= :reserved
  and (select b.root from runs b where b.journal = :by) = (select o.root from runs o where o.journal = :run)

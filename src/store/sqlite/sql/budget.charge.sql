-- fenced
-- No cap here: what was bought was bought, and the record of it must not be refused. The next reservation is. It counts
-- to the largest number that every reader can hold (2^53 - 1), and stays there.
update budgets set reserved = reserved - :reserved, spent = min(spent + :spent, 9007199254740991)
where run = :run and tenant = :tenant and unit = :unit and reserved >= :reserved
  and (select b.root from runs b where b.journal = :by) = (select o.root from runs o where o.journal = :run)

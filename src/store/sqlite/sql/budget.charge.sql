-- fenced
update budgets set reserved = reserved - :reserved, spent = spent + :spent
where run = :run and unit = :unit and reserved >= :reserved and reserved - :reserved + spent + :spent <= cap
  and (select b.root from runs b where b.journal = :by) = (select o.root from runs o where o.journal = :run)

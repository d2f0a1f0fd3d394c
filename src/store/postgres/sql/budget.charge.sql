-- fenced
update tape.budgets set reserved = reserved - :reserved, spent = spent + :spent
where run = :run and unit = :unit and reserved >= :reserved and reserved - :reserved + spent + :spent <= cap
  and (select b.root from tape.runs b where b.journal = :by) = (select o.root from tape.runs o where o.journal = :run)

-- unfenced: only finished runs are pruned
delete from budgets where run = :run

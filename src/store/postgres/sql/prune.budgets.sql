-- unfenced: only finished runs are pruned
delete from tape.budgets where run = :run

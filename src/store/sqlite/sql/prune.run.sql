-- unfenced: only finished runs are pruned
delete from runs where journal = :run

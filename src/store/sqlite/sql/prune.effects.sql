-- unfenced: only finished runs are pruned
delete from effects where run = :run

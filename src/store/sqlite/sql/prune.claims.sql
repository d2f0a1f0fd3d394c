-- unfenced: only finished runs are pruned
delete from claims where run = :run

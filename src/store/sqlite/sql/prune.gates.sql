-- unfenced: only finished runs are pruned
delete from gates where run = :run

-- unfenced: only finished runs are pruned
delete from timers where run = :run

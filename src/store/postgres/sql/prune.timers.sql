-- unfenced: only finished runs are pruned
delete from tape.timers where run = :run

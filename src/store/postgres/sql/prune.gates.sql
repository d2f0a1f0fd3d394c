-- unfenced: only finished runs are pruned
delete from tape.gates where run = :run

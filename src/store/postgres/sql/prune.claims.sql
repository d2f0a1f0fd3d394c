-- unfenced: only finished runs are pruned
delete from tape.claims where run = :run

-- unfenced: only finished runs are pruned
delete from tape.effects where run = :run

-- unfenced: only finished runs are pruned
delete from tape.runs where journal = :run

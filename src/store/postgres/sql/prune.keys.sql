-- unfenced: only finished runs are pruned
delete from tape.note_keys where journal = :run

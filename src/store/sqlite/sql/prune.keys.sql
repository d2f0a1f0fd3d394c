-- unfenced: only finished runs are pruned
delete from note_keys where journal = :run

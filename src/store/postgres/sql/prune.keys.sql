-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
delete from tape.note_keys where journal in (:run, -:run)

-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
delete from note_keys where journal in (:run, -:run)

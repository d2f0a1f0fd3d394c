-- unfenced: remembers a signal's key, so that a repeated one is no second signal
insert into tape.note_keys(journal, key, n) values (:journal, :key, :n)

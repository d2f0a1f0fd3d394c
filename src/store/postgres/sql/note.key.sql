-- unfenced: remembers a signal's key, so that a repeated one is no second signal
-- Written with n = 0 before the note is sent, so that senders of one key queue here, and with its number after.
insert into tape.note_keys(journal, key, n) values (:journal, :key, :n)
on conflict(journal, key) do update set n = excluded.n where note_keys.n = 0

-- fenced
update tape.leases set wants = :wants, due_at = tape.now_ms() + :in_ms where journal = :journal and owner is null and open

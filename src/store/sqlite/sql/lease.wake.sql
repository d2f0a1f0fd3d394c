-- fenced
update leases set wants = :wants, due_at = :now + :in_ms where journal = :journal and owner is null and open = 1

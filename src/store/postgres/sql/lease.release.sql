-- fenced
-- The token is bumped, never kept: with it kept, a released holder could still write. The row is never deleted.
update tape.leases set token = token + 1, nonce = null, owner = null, label = null, reactor = null, expires_at = tape.now_ms(),
  doomed = false, open = :open, last_end = :end, wants = :wants, due_at = tape.now_ms() + :in_ms
where journal = :journal and (kind = 'name' or notes = :taken)

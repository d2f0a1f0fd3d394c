-- unfenced: the creator takes the first term of the run it creates, in the same transaction
update tape.leases set token = greatest(token, (select token_floor from tape.meta)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = tape.now_ms() + :ttl_ms, acquired_at = tape.now_ms(), renewed_at = tape.now_ms(),
  progress_at = tape.now_ms(), max_stall_ms = :max_stall_ms, reason = 'start', wants = null
where journal = :journal
returning cast(token as text) as token

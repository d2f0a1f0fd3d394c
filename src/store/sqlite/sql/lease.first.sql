-- unfenced: the creator takes the first term of the run it creates, in the same transaction
update leases set token = max(token, (select token_floor from meta)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = :now + :ttl_ms, acquired_at = :now, renewed_at = :now,
  progress_at = :now, max_stall_ms = :max_stall_ms, reason = 'start', wants = null
where journal = :journal
returning cast(token as text) as token

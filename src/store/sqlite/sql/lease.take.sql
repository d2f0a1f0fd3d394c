-- unfenced: this is the takeover itself, one conditional statement on (owner, token) as read
update leases set token = max(token, (select token_floor from meta)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = :now + :ttl_ms, acquired_at = :now, reason = :reason,
  renewals = 0, renewed_at = :now, longest_gap_ms = 0, progress = 0, progress_at = :now, progress_note = null,
  max_stall_ms = :max_stall_ms, doomed = 0, stalled = 0, wants = null,
  last_end = case when owner is null then last_end else 'expired' end
where journal = :journal and token = :token and owner is :was and paused = 0
returning cast(token as text) as token, notes

-- unfenced: this is the takeover itself, one conditional statement on (owner, token) as read. It issues no token while the
-- server's timeline is not the recorded one: a promoted standby may have lost tokens, and the epoch must go up first.
update tape.leases set token = greatest(token, (select token_floor from tape.meta)) + 1, nonce = :nonce, owner = :owner, label = :label,
  reactor = :reactor, ttl_ms = :ttl_ms, expires_at = tape.now_ms() + :ttl_ms, acquired_at = tape.now_ms(), reason = :reason,
  renewals = 0, renewed_at = tape.now_ms(), longest_gap_ms = 0, progress = 0, progress_at = tape.now_ms(), progress_note = null,
  max_stall_ms = :max_stall_ms, doomed = false, stalled = false, wants = null,
  last_end = case when owner is null then last_end else 'expired' end
where journal = :journal and token = :token and owner is not distinct from :was and not paused
  and (select tape.on_timeline(m.timeline) from tape.meta m)
returning cast(token as text) as token, notes

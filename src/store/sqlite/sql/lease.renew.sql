-- fenced
-- Exact match of the term; the TTL stored in the row; an expired lease that nobody took may be renewed. A term that
-- declared maxStall and made no progress for longer is not renewed, and is marked so that its ledger line says why.
update leases set expires_at = :now + ttl_ms, renewals = renewals + 1,
  longest_gap_ms = max(longest_gap_ms, :now - renewed_at), renewed_at = :now,
  progress_at = case when :progress > progress then :now else progress_at end,
  progress = max(progress, :progress), progress_note = coalesce(:progress_note, progress_note),
  stalled = 0
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and doomed = 0
  and (max_stall_ms is null or :progress > progress or :now - progress_at <= max_stall_ms)
returning notes, ttl_ms

-- fenced
-- Exact match of the term; the TTL stored in the row; an expired lease that nobody took may be renewed. A term that
-- declared maxStall and made no progress for longer is not renewed, and is marked so that its ledger line says why. The timeline as in fence.sql.
update tape.leases set expires_at = tape.now_ms() + ttl_ms, renewals = renewals + 1,
  longest_gap_ms = greatest(longest_gap_ms, tape.now_ms() - renewed_at), renewed_at = tape.now_ms(),
  progress_at = case when :progress > progress then tape.now_ms() else progress_at end,
  progress = greatest(progress, :progress), progress_note = coalesce(:progress_note, progress_note),
  stalled = false
where journal = :journal and tenant is not distinct from :tenant and token = :token and nonce = :nonce and not doomed
  and (max_stall_ms is null or :progress > progress or tape.now_ms() - progress_at <= max_stall_ms)
  and (select tape.on_timeline(m.timeline) from tape.meta m)
returning notes, ttl_ms

-- unfenced: a verdict of the store over a holder that renews without progress; its lease may be taken at once
update tape.leases set stalled = true, expires_at = least(expires_at, tape.now_ms())
where journal = :journal and tenant is not distinct from :tenant and token = :token and nonce = :nonce and max_stall_ms is not null
  and :progress <= progress and tape.now_ms() - progress_at > max_stall_ms
  and (select tape.on_timeline(m.timeline) from tape.meta m)
returning journal

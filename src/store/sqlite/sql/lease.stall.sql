-- unfenced: a verdict of the store over a holder that renews without progress; its lease may be taken at once
update leases set stalled = 1, expires_at = min(expires_at, :now)
where journal = :journal and tenant = :tenant and token = :token and nonce = :nonce and max_stall_ms is not null
  and :progress <= progress and :now - progress_at > max_stall_ms
returning journal

-- unfenced: the row of a run that comes to be in the same transaction, with its creator's first term already begun
insert into leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
  renewed_at, progress_at, max_stall_ms, reason, due_at)
values (:journal, 'run', :tenant, :journal, :workflow, :token, :nonce, :owner, :label, :reactor,
  :ttl_ms, :now + :ttl_ms, :now, :now, :now, :max_stall_ms, 'start', :now)

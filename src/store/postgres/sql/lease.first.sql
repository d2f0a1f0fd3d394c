-- unfenced: the row of a run that comes to be in the same transaction, with its creator's first term already begun
insert into tape.leases(journal, kind, tenant, run, workflow, token, nonce, owner, label, reactor, ttl_ms, expires_at, acquired_at,
  renewed_at, progress_at, max_stall_ms, reason, due_at)
select :journal, 'run', :tenant, :journal, :workflow, m.token_floor + 1, :nonce, :owner, :label, :reactor, :ttl_ms,
  t.now + :ttl_ms, t.now, t.now, t.now, :max_stall_ms, 'start', t.now
from tape.meta m cross join (select tape.now_ms() as now) t
returning cast(token as text) as token

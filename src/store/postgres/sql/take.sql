-- unfenced: lease.take, of many: each on (owner, token) as read. SKIP LOCKED: who is locked is tried alone.
with f as materialized (
  select i.* from unnest(:journals::bigint[], :tokens::bigint[], :wases::text[], :reasons::text[])
    as i(journal, token, was, reason)
  cross join lateral (select 1 from tape.leases l where l.journal = i.journal and l.token = i.token
    and l.owner is not distinct from i.was and not l.paused for update skip locked) l
  where (select tape.on_timeline(m.timeline) from tape.meta m))
update tape.leases l set token = greatest(l.token, (select token_floor from tape.meta)) + 1, nonce = :nonce, owner = :owner,
  label = :label, reactor = :reactor, ttl_ms = :ttl_ms, expires_at = tape.now_ms() + :ttl_ms, acquired_at = tape.now_ms(),
  reason = f.reason, renewals = 0, renewed_at = tape.now_ms(), longest_gap_ms = 0, progress = 0,
  progress_at = tape.now_ms(), progress_note = null, max_stall_ms = :max_stall_ms, doomed = false, stalled = false,
  wants = null, last_end = case when l.owner is null then l.last_end else 'expired' end
from f where l.journal = any (array[f.journal])
returning l.journal, cast(l.token as text) as token, l.notes

-- fenced
-- All leases of a process in one statement, a row back for each that is held. Sorted by journal like every other
-- multi-row statement: 500 unordered heartbeats against updates of 100 rows deadlocked once a second. None on a promoted
-- server, as in fence.sql: a holder that was fenced on the old one must not be told that it still holds.
with f as materialized (
  select i.journal, i.progress, i.note
  from unnest(:journals::bigint[], :tenants::text[], :tokens::bigint[], :nonces::bigint[], :progresses::bigint[], :progress_notes::text[])
    as i(journal, tenant, token, nonce, progress, note)
  cross join lateral (select 1 from tape.leases l where l.journal = i.journal and l.token = i.token and l.nonce = i.nonce
    and l.tenant is not distinct from i.tenant and not l.doomed and (l.max_stall_ms is null or i.progress > l.progress or tape.now_ms() - l.progress_at <= l.max_stall_ms)
    for no key update skip locked) l
  where (select tape.on_timeline(m.timeline) from tape.meta m))
update tape.leases l set expires_at = tape.now_ms() + l.ttl_ms, renewals = l.renewals + 1,
  longest_gap_ms = greatest(l.longest_gap_ms, tape.now_ms() - l.renewed_at), renewed_at = tape.now_ms(),
  progress_at = case when f.progress > l.progress then tape.now_ms() else l.progress_at end,
  progress = greatest(l.progress, f.progress), progress_note = coalesce(f.note, l.progress_note), stalled = false
from f where l.journal = any (array[f.journal])
returning l.journal, l.tenant, cast(l.token as text) as token, cast(l.nonce as text) as nonce, l.notes, l.ttl_ms

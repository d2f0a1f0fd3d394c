-- read
-- lease.read, of many.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end, l.workflow,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now, r.id as name
from unnest(:journals::bigint[]) as i(journal)
cross join lateral (select l.journal, l.kind, l.tenant, l.run, l.token, l.nonce, l.owner, l.label, l.reactor, l.ttl_ms,
  l.expires_at, l.acquired_at, l.reason, l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at,
  l.progress_note, l.max_stall_ms, l.doomed, l.paused, l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end, l.workflow
  from tape.leases l where l.journal = i.journal limit 1) l
left join lateral (select r.id from tape.runs r where r.journal = l.journal and l.kind = 'run' limit 1) r on true

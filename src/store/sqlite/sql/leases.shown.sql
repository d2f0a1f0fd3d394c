-- read
-- lease.read, of the runs of one page: one look for all.
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end, l.workflow,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, :now as now,
  (select r.id from runs r where r.journal = l.journal) as name
from json_each(:journals) i cross join leases l on l.journal = i.value

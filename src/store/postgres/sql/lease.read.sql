-- read
select l.journal, l.kind, l.tenant, l.run, l.owner, l.label, l.reactor, l.ttl_ms, l.expires_at, l.acquired_at, l.reason,
  l.renewals, l.renewed_at, l.longest_gap_ms, l.progress, l.progress_at, l.progress_note, l.max_stall_ms, l.doomed, l.paused,
  l.stalled, l.notes, l.open, l.wants, l.due_at, l.last_end, l.workflow,
  cast(l.token as text) as token, cast(l.nonce as text) as nonce, tape.now_ms() as now,
  coalesce(n.name, r.id) as name
from tape.leases l left join tape.names n on n.journal = l.journal left join tape.runs r on r.journal = l.journal and l.kind = 'run'
where l.journal = :journal

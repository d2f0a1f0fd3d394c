-- read
-- Runs that somebody drives, newest first: among the leases that the tenant's workers hold. The + as in
-- run.wanted.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from tape.leases l cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause,
  r.stuck_from, r.input_hash, r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at
  from tape.runs r where r.journal = l.journal offset 0) r
where l.owner is not null and l.kind <> 'name' and l.kind || '' = 'run' and l.tenant = :tenant and l.journal + 0 < :before and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow) and (:label_key is null or r.labels::json ->> :label_key = :label_value)
order by l.journal + 0 desc limit :limit

-- read
-- Runs that could go on, newest first: in the order of an index of nothing but what asks for recovery. The tenant as in
-- effect.list.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from tape.leases l cross join lateral (select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause,
  r.stuck_from, r.input_hash, r.labels, r.outcome, r.parent, r.root, r.created_at, r.ended_at
  from tape.runs r where r.journal = l.journal offset 0) r
where l.wants = 'recovery' and l.owner is null and l.kind || '' = 'run' and l.tenant >= :tenant and l.tenant <= :tenant
  and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow) and (:label_key is null or r.labels::json ->> :label_key = :label_value)
order by l.tenant desc, l.journal desc limit :limit

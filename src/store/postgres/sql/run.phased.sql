-- read
-- Runs in one phase, newest first. The second condition is the index's own.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from tape.runs r cross join lateral (select l.notes, l.owner, l.wants from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and r.phase = :phase and r.phase not in ('LIVE', 'COMPLETED') and r.journal < :before
  and (:workflow is null or r.workflow = :workflow) and (:label_key is null or r.labels::json ->> :label_key = :label_value)
order by r.journal desc limit :limit

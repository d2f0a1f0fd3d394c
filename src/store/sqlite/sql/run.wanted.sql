-- read
-- Runs that could go on, newest first: in the order of an index of nothing but what asks for recovery.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from leases l indexed by leases_wanted cross join runs r on r.journal = l.journal
where l.wants = 'recovery' and l.owner is null and l.kind = 'run' and l.tenant = :tenant and l.journal < :before
  and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or exists (select 1 from json_each(r.labels) j where j.key = :label_key and j.value = :label_value))
order by l.journal desc limit :limit

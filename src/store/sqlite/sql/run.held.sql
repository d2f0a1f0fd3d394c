-- read
-- Runs that somebody drives, newest first: among the leases that the tenant's workers hold.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from leases l indexed by leases_held cross join runs r on r.journal = l.journal
where l.owner is not null and l.kind <> 'name' and l.kind = 'run' and l.tenant = :tenant and l.journal < :before and r.phase = 'LIVE'
  and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or exists (select 1 from json_each(r.labels) j where j.key = :label_key and j.value = :label_value))
order by l.journal desc limit :limit

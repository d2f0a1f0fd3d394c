-- read
-- Everything below one root, oldest first; a page goes on behind :before. The + keeps the planner from the order of all runs.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from tape.runs r cross join lateral (select l.notes, l.owner, l.wants from tape.leases l where l.journal = r.journal offset 0) l
where r.root = :root and r.parent is not null and r.tenant is not distinct from :tenant and (:before is null or r.journal > :before)
  and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or r.labels::json ->> :label_key = :label_value)
  and (:status is null or (case when r.phase <> 'LIVE' then r.phase when l.owner is not null then 'RUNNING'
    when l.wants is not null then 'RUNNABLE' else 'WAITING' end) = any(string_to_array(:status, ',')))
  and (:started_since is null or r.created_at >= :started_since) and (:started_until is null or r.created_at < :started_until)
  and (:ended_since is null or r.ended_at >= :ended_since) and (:ended_until is null or r.ended_at < :ended_until)
  and (not :doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.journal + 0 limit :limit

-- read
-- Runs by when they ended, latest first; a page goes on behind the run :before, which ended at :edge.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from tape.runs r cross join lateral (select l.notes, l.owner, l.wants from tape.leases l where l.journal = r.journal offset 0) l
where r.tenant = :tenant and r.ended_at is not null and r.ended_at >= :since and r.ended_at <= :through
  and (r.ended_at, r.journal) < (:edge, :before)
  and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or r.labels::json ->> :label_key = :label_value)
  and (:status is null or (case when r.phase <> 'LIVE' then r.phase when l.owner is not null then 'RUNNING'
    when l.wants is not null then 'RUNNABLE' else 'WAITING' end) = any(string_to_array(:status, ',')))
  and (:started_since is null or r.created_at >= :started_since) and (:started_until is null or r.created_at < :started_until)
  and (not :doubt or (select true from tape.effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK') limit 1))
order by r.ended_at desc, r.journal desc limit :limit

-- read
-- Everything below one root, oldest first; a page goes on behind :before.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from runs r cross join leases l on l.journal = r.journal
where r.root = :root and r.parent is not null and +r.tenant = :tenant and (:before is null or r.journal > :before)
  and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or exists (select 1 from json_each(r.labels) j where j.key = :label_key and j.value = :label_value))
  and (:status is null or instr(',' || :status || ',', ',' || (case when r.phase <> 'LIVE' then r.phase
    when l.owner is not null then 'RUNNING' when l.wants is not null then 'RUNNABLE' else 'WAITING' end) || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
  and (not :doubt or exists (select 1 from effects e
    where e.tenant = r.tenant and e.run = r.journal and e.status in ('UNKNOWN', 'STUCK')))
order by r.journal limit :limit

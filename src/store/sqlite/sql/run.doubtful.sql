-- read
-- Runs with an effect or an obligation in doubt, newest first: by the index of those in doubt, which are few.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from (select distinct e.run from effects e indexed by effects_doubt
  where e.tenant = :tenant and e.status in ('UNKNOWN', 'STUCK') and e.run < :before) d
  cross join runs r on r.journal = d.run cross join leases l on l.journal = r.journal
where r.tenant = :tenant
  and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or exists (select 1 from json_each(r.labels) j where j.key = :label_key and j.value = :label_value))
  and (:status is null or instr(',' || :status || ',', ',' || (case when r.phase <> 'LIVE' then r.phase
    when l.owner is not null then 'RUNNING' when l.wants is not null then 'RUNNABLE' else 'WAITING' end) || ',') > 0)
  and (:started_since is null or +r.created_at >= :started_since) and (:started_until is null or +r.created_at < :started_until)
  and (:ended_since is null or +r.ended_at >= :ended_since) and (:ended_until is null or +r.ended_at < :ended_until)
order by d.run desc limit :limit

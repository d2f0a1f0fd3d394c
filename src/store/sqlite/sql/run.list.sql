-- read
-- By number, newest first, along the tenant's own runs: it stops after the page.
select r.journal, r.tenant, r.id, r.workflow, r.version, r.phase, r.cause, r.stuck_from, r.input_hash, r.labels, r.outcome,
  r.parent, r.root, r.created_at, r.ended_at, l.notes, l.owner as lease_owner, l.wants as lease_wants
from runs r indexed by runs_tenant join leases l on l.journal = r.journal
where r.tenant = :tenant and r.journal < :before and (:workflow is null or r.workflow = :workflow)
  and (:label_key is null or exists (select 1 from json_each(r.labels) j where j.key = :label_key and j.value = :label_value))
  and (:status is null or instr(',' || :status || ',', ',' || (case when r.phase <> 'LIVE' then r.phase
    when l.owner is not null then 'RUNNING' when l.wants is not null then 'RUNNABLE' else 'WAITING' end) || ',') > 0)
order by r.journal desc limit :limit

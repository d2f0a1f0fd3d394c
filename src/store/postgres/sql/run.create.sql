-- unfenced: creating is unique by the run's id; a child is created inside its parent's fenced append. The || as
-- in run.settled.
insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, parent, parent_pos, root, created_at, counted)
select :journal, x.tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :parent, :parent_pos, x.root, tape.now_ms(), coalesce(x.counted, false)
from (select coalesce(:tenant, (select p.tenant from tape.runs p where p.journal = :parent)) as tenant,
             coalesce((select p.root from tape.runs p where p.journal = :parent), :journal) as root,
             (select p.counted from tape.runs p where p.journal = :parent) as counted) x
where not exists (select 1 from tape.tombstones t where t.tenant = x.tenant and t.id = :id)
  and (:parent is null or exists (select 1 from tape.runs p where p.journal = :parent and p.tenant = x.tenant and p.phase || '' = 'LIVE'))
on conflict do nothing

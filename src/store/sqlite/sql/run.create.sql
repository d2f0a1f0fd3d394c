-- unfenced: creating is unique by the run's id; a child is created inside its parent's fenced append
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, parent, parent_pos, root, created_at, counted)
select :journal, x.tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :parent, :parent_pos, x.root, :at, coalesce(x.counted, 0)
from (select coalesce(:tenant, (select p.tenant from runs p where p.journal = :parent)) as tenant,
             coalesce((select p.root from runs p where p.journal = :parent), :journal) as root,
             (select p.counted from runs p where p.journal = :parent) as counted) x
where not exists (select 1 from tombstones t where t.tenant = x.tenant and t.id = :id)
  and (:parent is null or exists (select 1 from runs p where p.journal = :parent and p.tenant = x.tenant and p.phase = 'LIVE'))
on conflict do nothing

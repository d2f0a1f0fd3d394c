-- unfenced: creating is unique by the run's id
-- A run without a parent. Like run.create, but it reads nothing of the table it inserts into: that would be materialised.
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, :at
where not exists (select 1 from tombstones t where t.tenant = :tenant and t.id = :id)
on conflict do nothing

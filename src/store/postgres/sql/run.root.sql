-- unfenced: creating is unique by the run's id
-- A run without a parent.
insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, tape.now_ms()
where not exists (select 1 from tape.tombstones t where t.tenant = :tenant and t.id = :id)
on conflict do nothing

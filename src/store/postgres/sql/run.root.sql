-- unfenced: creating is unique by the run's id
-- A run without a parent; of a tenant with a quota only where it was admitted.
insert into tape.runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at, counted)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, tape.now_ms(), :admitted
where not exists (select 1 from tape.tombstones t where t.tenant = :tenant and t.id = :id)
  and (:admitted or not exists (select 1 from tape.quotas q where q.tenant in (:tenant, '') and (q.runs is not null or q.bytes is not null)))
on conflict do nothing

-- unfenced: creating is unique by the run's id
-- A run without a parent; of a tenant with a quota only where it was admitted. Two look-ups: IN would make a table of its
-- list each time. Like run.create, but it reads nothing of the table it inserts into: that would be materialised.
insert into runs(journal, tenant, id, workflow, version, phase, input_hash, labels, root, created_at, counted)
select :journal, :tenant, :id, :workflow, :version, 'LIVE', :input_hash, :labels, :journal, :at, :admitted
where not exists (select 1 from tombstones t where t.tenant = :tenant and t.id = :id)
  and (:admitted or (not exists (select 1 from quotas q where q.tenant = :tenant and (q.runs is not null or q.bytes is not null))
    and not exists (select 1 from quotas d where d.tenant = '' and (d.runs is not null or d.bytes is not null))))
on conflict do nothing

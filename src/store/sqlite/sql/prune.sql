-- name: prune.blobs
-- unfenced: only finished runs are pruned
-- writes: blobs
delete from blobs where journal = :run;

-- name: prune.budgets
-- unfenced: only finished runs are pruned
-- writes: budgets
delete from budgets where run = :run;

-- name: prune.business_keys
-- unfenced: only finished runs are pruned
-- writes: business_keys
delete from business_keys where run = :run;

-- name: prune.chunks
-- unfenced: only finished runs are pruned
-- writes: chunks
delete from chunks where run = :run;

-- name: prune.effects
-- unfenced: only finished runs are pruned
-- writes: effects
delete from effects where run = :run;

-- name: prune.find
-- read
-- Roots that ended long ago, together with their whole tree, and with nothing left to compensate. A tree is pruned as a
-- whole.
select r.journal from runs r
where r.tenant = :tenant and r.ended_at < :before and r.parent is null
  and not exists (select 1 from runs c
    where c.root = r.journal and c.parent is not null and (c.ended_at is null or c.ended_at >= :before))
  and not exists (select 1 from effects e
    where e.root = r.journal and e.role = 'compensation' and e.status not in ('COMPENSATED', 'DISCHARGED'))
  and (:stamp is null or not exists (select 1
    from (select r.journal as journal union all select c.journal from runs c where c.root = r.journal and c.parent is not null) tree
    cross join (select 1 as side union all select -1) x
    where (select h.id from records h where h.journal = tree.journal * x.side order by h.seq desc limit 1) > :stamp
      or exists (select 1 from leases i where i.run = tree.journal and i.kind = 'item'
        and (select h.id from records h where h.journal = i.journal * x.side order by h.seq desc limit 1) > :stamp)))
order by r.ended_at limit :limit;

-- name: prune.gates
-- unfenced: only finished runs are pruned
-- writes: gates
delete from gates where run = :run;

-- name: prune.keys
-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
-- writes: note_keys
delete from note_keys where journal in (:run, -:run);

-- name: prune.leases
-- unfenced: a run's lease is deleted with the run; the tombstone keeps its token
-- writes: leases
delete from leases where journal = :run or (run = :run and kind = 'item');

-- name: prune.members
-- read
select r.journal, r.id, r.created_at, r.ended_at, cast(l.token as text) as token from runs r join leases l on l.journal = r.journal
where r.journal in (select :run union all select c.journal from runs c where c.root = :run and c.parent is not null);

-- name: prune.published
-- unfenced: only finished runs are pruned
-- writes: published
delete from published where run = :run;

-- name: prune.records
-- unfenced: only finished runs are pruned
-- writes: records
delete from records where journal in (:run, -:run) or journal in (
  select j.journal from leases j where j.run = :run and j.kind = 'item'
  union all select -j.journal from leases j where j.run = :run and j.kind = 'item');

-- name: prune.replies
-- unfenced: only finished runs are pruned
-- writes: replies
delete from replies where journal = :run;

-- name: prune.run
-- unfenced: only finished runs are pruned
-- writes: runs
delete from runs where journal = :run;

-- name: prune.streams
-- unfenced: only finished runs are pruned
-- writes: streams
delete from streams where run = :run;

-- name: prune.timers
-- unfenced: only finished runs are pruned
-- writes: timers
delete from timers where run = :run;

-- name: prune.tombstone
-- unfenced: only finished runs are pruned; the id is never started again
-- writes: tombstones
-- With the run's position in lists, so that a reader between two pages can continue after it.
insert into tombstones(tenant, id, token, at, journal, created_at, ended_at)
values (:tenant, :id, :token, :at, :journal, :created_at, :ended_at);

-- name: prune.usage
-- unfenced: deleted records no longer count as used, as far as they were measured
-- writes: quotas
update quotas set bytes_used = max(0, bytes_used - coalesce((select sum(octet_length(r.body)) from records r
  where r.id <= (select d.metered from quotas d where d.tenant = '') and r.journal in (
    select :run union all select -:run
    union all select j.journal from leases j where j.run = :run and j.kind = 'item'
    union all select -j.journal from leases j where j.run = :run and j.kind = 'item')), 0)
  - coalesce((select sum(b.bytes) from blobs b where b.journal = :run and b.counted), 0))
where tenant = (select l.tenant from leases l where l.journal = :run)
  and exists (select 1 from quotas d where d.tenant = '' and d.metered is not null);

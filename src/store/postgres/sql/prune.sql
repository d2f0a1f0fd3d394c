-- name: prune.blobs
-- unfenced: only finished runs are pruned
-- writes: blobs
delete from tape.blobs where journal = :run;

-- name: prune.budgets
-- unfenced: only finished runs are pruned
-- writes: budgets
delete from tape.budgets where run = :run;

-- name: prune.business_keys
-- unfenced: only finished runs are pruned
-- writes: business_keys
delete from tape.business_keys where run = :run;

-- name: prune.chunks
-- unfenced: only finished runs are pruned
-- writes: chunks
delete from tape.chunks where run = :run;

-- name: prune.effects
-- unfenced: only finished runs are pruned
-- writes: effects
delete from tape.effects where run = :run;

-- name: prune.find
-- read
-- Roots that ended long ago, together with their whole tree, and with nothing left to compensate. A tree is pruned as a
-- whole. With a position of the feed, only those without a record after it: a sink has not passed the others. The last
-- record of a journal has its last position. LIMIT 1 as in end_many: lookups instead of joins with all trees. Locked, because another process may prune at
-- the same moment: it takes the next ones.
select r.journal from tape.runs r
where r.tenant = :tenant and r.ended_at < :before and r.parent is null
  and (select 1 from tape.runs c
    where c.root = r.journal and c.parent is not null and (c.ended_at is null or c.ended_at >= :before) limit 1) is null
  and (select 1 from tape.effects e
    where e.root = r.journal and e.role = 'compensation' and e.status not in ('COMPENSATED', 'DISCHARGED') limit 1) is null
  and (:stamp::bigint is null or (select 1
    from (select r.journal union all select c.journal from tape.runs c where c.root = r.journal and c.parent is not null) m
    cross join lateral (select m.journal union all select i.journal from tape.leases i where i.run = m.journal and i.kind = 'item') j
    cross join lateral (values (j.journal), (-j.journal)) x(journal)
    cross join lateral (select h.stamp, h.journal, h.seq from tape.records h where h.journal = x.journal order by h.seq desc limit 1) h
    where (h.stamp, h.journal, h.seq) > (:stamp::bigint, :after_journal::bigint, :after_seq::bigint) limit 1) is null)
order by r.ended_at limit :limit
for update of r skip locked;

-- name: prune.gates
-- unfenced: only finished runs are pruned
-- writes: gates
delete from tape.gates where run = :run;

-- name: prune.keys
-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
-- writes: note_keys
delete from tape.note_keys where journal in (:run, -:run::bigint);

-- name: prune.leases
-- unfenced: a run's lease is deleted with the run; the tombstone keeps its token
-- writes: leases
delete from tape.leases where journal = any(array(
  select :run union all select j.journal from tape.leases j where j.run = :run and j.kind = 'item'));

-- name: prune.members
-- read
with m as materialized (
  select :run as journal union all select c.journal from tape.runs c where c.root = :run and c.parent is not null)
select m.journal, r.id, r.created_at, r.ended_at, l.token from m
cross join lateral (select r.id, r.created_at, r.ended_at from tape.runs r where r.journal = m.journal limit 1) r
cross join lateral (select cast(l.token as text) as token from tape.leases l where l.journal = m.journal limit 1) l;

-- name: prune.published
-- unfenced: only finished runs are pruned
-- writes: published
delete from tape.published where run = :run;

-- name: prune.records
-- unfenced: only finished runs are pruned. An array, because OR with a sub-select would scan the table.
-- writes: records
delete from tape.records where journal = any(array(
  select x.journal from (values (:run), (-:run::bigint)) x(journal)
  union all select j.journal from tape.leases j where j.run = :run and j.kind = 'item'
  union all select -j.journal from tape.leases j where j.run = :run and j.kind = 'item'));

-- name: prune.replies
-- unfenced: only finished runs are pruned
-- writes: replies
delete from tape.replies where journal = :run;

-- name: prune.run
-- unfenced: only finished runs are pruned
-- writes: runs
delete from tape.runs where journal = :run;

-- name: prune.streams
-- unfenced: only finished runs are pruned
-- writes: streams
delete from tape.streams where run = :run;

-- name: prune.timers
-- unfenced: only finished runs are pruned
-- writes: timers
delete from tape.timers where run = :run;

-- name: prune.tombstone
-- unfenced: only finished runs are pruned; the id is never started again
-- writes: tombstones
-- With the run's position in lists, so that a reader between two pages can continue after it.
insert into tape.tombstones(tenant, id, token, at, journal, created_at, ended_at)
values (:tenant, :id, :token, tape.now_ms(), :journal, :created_at, :ended_at);

-- name: prune.usage
-- unfenced: deleted records no longer count as used, as far as they were measured
-- writes: quotas
update tape.quotas q set bytes_used = greatest(0, q.bytes_used - coalesce((select sum(octet_length(r.body))::bigint from tape.records r
  where r.stamp <= d.metered and r.journal = any(array(
    select x.journal from (values (:run), (-:run::bigint)) x(journal)
    union all select j.journal from tape.leases j where j.run = :run and j.kind = 'item'
    union all select -j.journal from tape.leases j where j.run = :run and j.kind = 'item'))), 0)
  - coalesce((select sum(b.bytes)::bigint from tape.blobs b where b.journal = :run and b.counted), 0))
from tape.quotas d
where d.tenant = '' and d.metered is not null and q.tenant = (select l.tenant from tape.leases l where l.journal = :run);

-- name: erase.flag
-- unfenced: only finished runs are erased
-- writes: runs
-- From here on the archive gets none of their payloads, whatever becomes of the rest of the erasure.
update runs set outcome = :erased where journal in (select i.value from json_each(:runs) i) and ended_at is not null;

-- name: erase.gates
-- unfenced: only finished runs are erased
-- writes: gates
update gates set payload = case when payload is null then null else :erased end, value = case when value is null then null else :erased end
where run = :run and pos in (select i.value from json_each(:positions) i);

-- name: erase.journals
-- read
-- The journals of a run, without inboxes, by their numbers.
select x.journal from (select :run as journal union all select l.journal from leases l where l.run = :run and l.kind = 'item') x
where x.journal >= :from order by x.journal limit :limit;

-- name: erase.labels
-- unfenced: only finished runs are erased
-- writes: run_labels
update run_labels set value = :word where journal = :run;

-- name: erase.lease
-- unfenced: only finished runs are erased; the note of the last progress is no part of the fence
-- writes: leases
update leases set progress_note = :word where journal = :run and progress_note is not null;

-- name: erase.page
-- read
-- `counted`: the record's bytes count as used.
select r.seq, r.kind, r.body, r.id <= coalesce((select d.metered from quotas d where d.tenant = ''), 0) as counted from records r
where r.journal = :journal and r.seq > :above order by r.seq limit :limit;

-- name: erase.postpone
-- unfenced: retention waits while a tree is erased
-- writes: retention
update retention set due_at = max(due_at, :at + :delay_ms) where journal = :root;

-- name: erase.published
-- unfenced: only finished runs are erased
-- writes: published
update published set value = :erased where run = :run;

-- name: erase.records
-- unfenced: only finished runs are erased, whose journals no holder appends to
-- writes: records
update records set body = i.value ->> 1 from json_each(:rows) i where journal = :journal and seq = i.value ->> 0;

-- name: erase.replies
-- unfenced: only finished runs are erased
-- writes: replies
update replies set body = i.value ->> 1 from json_each(:rows) i where journal = :run and n = i.value ->> 0;

-- name: erase.run
-- unfenced: only finished runs are erased
-- writes: runs
update runs set labels = :labels where journal = :run;

-- name: erase.target
-- read
select r.root from runs r where r.tenant = :tenant and r.id = :id;

-- name: erase.tree
-- read
-- The runs of a tree after one of them, in the order in which they were created.
select r.journal, r.id, r.labels from (select :root as journal
  union all select c.journal from runs c where c.root = :root and c.parent is not null) x
cross join runs r on r.journal = x.journal and r.tenant = :tenant
where x.journal >= :from order by x.journal limit :limit;

-- name: erase.usage
-- unfenced: erased bytes no longer count as used, as far as they were measured
-- writes: quotas
update quotas set bytes_used = max(0, bytes_used - :bytes)
where tenant = :tenant and exists (select 1 from quotas d where d.tenant = '' and d.metered is not null);

-- name: prune.blobs
-- unfenced: only finished runs are pruned
-- writes: blobs
delete from blobs where journal in (select i.value from json_each(:runs) i);

-- name: prune.budgets
-- unfenced: only finished runs are pruned
-- writes: budgets
delete from budgets where run in (select i.value from json_each(:runs) i);

-- name: prune.business_keys
-- unfenced: only finished runs are pruned
-- writes: business_keys
delete from business_keys where run in (select i.value from json_each(:runs) i);

-- name: prune.chunks
-- unfenced: only finished runs are pruned
-- writes: chunks
delete from chunks where run in (select i.value from json_each(:runs) i);

-- name: prune.doubt
-- read
-- Runs with something that is not settled: an obligation, or an effect that may happen or may have happened.
select distinct e.run from json_each(:runs) i cross join effects e on e.run = i.value
where e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN', 'COMPENSATED', 'DISCHARGED');

-- name: prune.due
-- unfenced: what is deleted is no longer due
-- writes: retention
delete from retention where journal in (select i.value from json_each(:runs) i);

-- name: prune.effects
-- unfenced: only finished runs are pruned
-- writes: effects
delete from effects where run in (select i.value from json_each(:runs) i);

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
delete from gates where run in (select i.value from json_each(:runs) i);

-- name: prune.heads
-- read
-- The last record of every journal of these runs: their own, those of their items, and the inboxes of both. Records are
-- only appended, so equal numbers mean an unchanged tree.
with j as (select i.value as run, i.value as journal from json_each(:runs) i
  union all select i.value, l.journal from json_each(:runs) i cross join leases l on l.run = i.value and l.kind = 'item'),
x as (select j.run, j.journal from j union all select j.run, -j.journal from j)
select x.run, x.journal, h.seq, cast(h.id as text) as stamp from x
cross join records h on h.journal = x.journal and h.seq = (select max(m.seq) from records m where m.journal = x.journal);

-- name: prune.keys
-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
-- writes: note_keys
delete from note_keys where journal in (select i.value from json_each(:runs) i union all select -i.value from json_each(:runs) i);

-- name: prune.labels
-- unfenced: only finished runs are pruned
-- writes: run_labels
delete from run_labels where journal in (select i.value from json_each(:runs) i);

-- name: prune.leases
-- unfenced: a run's lease is deleted with the run; the tombstone keeps its token
-- writes: leases
delete from leases where journal in (select i.value from json_each(:journals) i);

-- name: prune.lock
-- read
-- The roots that still exist. No other process can write meanwhile.
select r.journal from json_each(:roots) i cross join runs r on r.journal = i.value and r.tenant = :tenant;

-- name: prune.members
-- read
-- The runs of these trees, each tree in the order in which its runs were created.
select r.journal, r.root, r.tenant, r.id, r.workflow, r.version, r.phase, r.input_hash, r.labels, r.parent, r.created_at, r.ended_at,
  coalesce(r.outcome = :erased, false) as erased, cast(l.token as text) as token
from (select i.value as journal, i.value as root from json_each(:roots) i
  union all select c.journal, c.root from json_each(:roots) i cross join runs c on c.root = i.value and c.parent is not null) x
cross join runs r on r.journal = x.journal and r.tenant = :tenant
cross join leases l on l.journal = x.journal order by x.root, x.journal;

-- name: prune.published
-- unfenced: only finished runs are pruned
-- writes: published
delete from published where run in (select i.value from json_each(:runs) i);

-- name: prune.records
-- unfenced: only finished runs are pruned
-- writes: records
delete from records where journal in (select i.value from json_each(:journals) i);

-- name: prune.replies
-- unfenced: only finished runs are pruned
-- writes: replies
delete from replies where journal in (select i.value from json_each(:runs) i);

-- name: prune.runs
-- unfenced: only finished runs are pruned
-- writes: runs
delete from runs where journal in (select i.value from json_each(:runs) i);

-- name: prune.streams
-- unfenced: only finished runs are pruned
-- writes: streams
delete from streams where run in (select i.value from json_each(:runs) i);

-- name: prune.timers
-- unfenced: only finished runs are pruned
-- writes: timers
delete from timers where run in (select i.value from json_each(:runs) i);

-- name: prune.tombstones
-- unfenced: only finished runs are pruned; the id is never started again
-- writes: tombstones
-- With the run's position in lists, so that a reader between two pages can continue after it.
insert into tombstones(tenant, id, token, at, journal, created_at, ended_at, archive)
select r.tenant, r.id, l.token, :at, r.journal, r.created_at, r.ended_at, :archive
from json_each(:runs) i cross join runs r on r.journal = i.value cross join leases l on l.journal = i.value;

-- name: prune.usage
-- unfenced: deleted records no longer count as used, as far as they were measured
-- writes: quotas
update quotas set bytes_used = max(0, bytes_used - coalesce((select sum(octet_length(r.body)) from json_each(:journals) i
    cross join records r on r.journal = i.value where r.id <= (select d.metered from quotas d where d.tenant = '')), 0)
  - coalesce((select sum(b.bytes) from json_each(:runs) i cross join blobs b on b.journal = i.value where b.counted), 0))
where tenant = :tenant and exists (select 1 from quotas d where d.tenant = '' and d.metered is not null);

-- name: retention.archived
-- read
-- Runs that are in the archive, by id.
select id, journal, archive, at, created_at, ended_at from tombstones
where tenant = :tenant and id > :above and (:id is null or id = :id) and archive is not null order by id limit :limit;

-- name: retention.blobs
-- read
select b.journal, b.blob, b.n, b.chunks, b.bytes, b.body from blobs b
where b.journal in (select i.value from json_each(:runs) i) and (b.journal, b.blob, b.n) > (:after_run, :after_name, :after_n)
  and (select l.tenant from leases l where l.journal = b.journal) = :tenant
order by b.journal, b.blob, b.n limit :limit;

-- name: retention.chunks
-- read
select c.run, c.stream, c.chunk_offset, c.part, cast(c.token as text) as token, c.at, c.body from chunks c
where c.run in (select i.value from json_each(:runs) i) and (c.run, c.stream, c.chunk_offset) > (:after_run, :after_name, :after_n)
  and (select l.tenant from leases l where l.journal = c.run) = :tenant
order by c.run, c.stream, c.chunk_offset limit :limit;

-- name: retention.drop
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
delete from retention where tenant = :tenant and journal in (select i.value from json_each(:journals) i);

-- name: retention.due
-- read
-- A run may have been pruned while it was dated.
select x.journal, x.due_at from retention x where x.tenant = :tenant and x.due_at <= :until
  and exists (select 1 from runs r where r.journal = x.journal)
order by x.due_at, x.journal limit :limit;

-- name: retention.figures
-- read
select (select min(x.due_at) from retention x where x.tenant = :tenant) as first, :at as now;

-- name: retention.postpone
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
update retention set due_at = :due_at where tenant = :tenant and journal in (select i.value from json_each(:journals) i);

-- name: retention.preview
-- read
-- What is due by a time, by workflow, of the first trees.
select r.workflow, count(*) as trees, min(r.ended_at) as ended_at, min(x.due_at) as due_at
from (select x.journal, x.due_at from retention x where x.tenant = :tenant and x.due_at <= :until order by x.due_at limit :cap) x
cross join runs r on r.journal = x.journal group by r.workflow order by r.workflow;

-- name: retention.put
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
insert into retention(journal, tenant, due_at) select i.value ->> 0, :tenant, i.value ->> 1 from json_each(:rows) i where true
on conflict(journal) do update set due_at = excluded.due_at where due_at <> excluded.due_at;

-- name: retention.records
-- read
-- As they are stored, by journal and number.
select r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body from records r
where r.journal in (select i.value from json_each(:journals) i) and (r.journal, r.seq) > (:after_journal, :after_seq) and r.seq <= :through
  and (select l.tenant from leases l where l.journal = abs(r.journal)) = :tenant
order by r.journal, r.seq limit :limit;

-- name: retention.store
-- read
select store_id, epoch, :at as now from meta;

-- name: retention.walk
-- read
-- Ended runs, the oldest first, with how long their code keeps them. A journal may continue after the run's end.
select r.journal, r.workflow, r.ended_at, r.parent, (select h.body ->> '$.retainMs' from records h
  where h.journal = r.journal and h.kind = 'run.ended' and r.parent is null order by h.seq desc limit 1) as retain_ms
from runs r where r.tenant = :tenant and r.ended_at < :until and (r.ended_at, r.journal) > (:after_at, :after_journal)
order by r.ended_at, r.journal limit :limit;

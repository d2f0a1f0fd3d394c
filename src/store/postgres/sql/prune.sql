-- name: erase.flag
-- unfenced: only finished runs are erased
-- writes: runs
-- From here on the archive gets none of their payloads, whatever becomes of the rest of the erasure.
update tape.runs set outcome = :erased
where journal = any(array(select json_array_elements_text(:runs::json)::bigint)) and ended_at is not null;

-- name: erase.gates
-- unfenced: only finished runs are erased
-- writes: gates
update tape.gates set payload = case when payload is null then null else :erased::text end,
  value = case when value is null then null else :erased::text end
where run = :run and pos = any(array(select json_array_elements_text(:positions::json)::bigint));

-- name: erase.journals
-- read
-- The journals of a run, without inboxes, by their numbers.
select x.journal from (select :run::bigint as journal union all
  select l.journal from tape.leases l where l.run = :run::bigint and l.kind = 'item') x
where x.journal >= :from order by x.journal limit :limit;

-- name: erase.labels
-- unfenced: only finished runs are erased
-- writes: run_labels
update tape.run_labels set value = :word where journal = :run;

-- name: erase.lease
-- unfenced: only finished runs are erased; the note of the last progress is no part of the fence
-- writes: leases
update tape.leases set progress_note = :word where journal = :run and progress_note is not null;

-- name: erase.page
-- read
-- `counted`: the record's bytes count as used.
select r.seq, r.kind, r.body, r.stamp <= coalesce((select d.metered from tape.quotas d where d.tenant = ''), 0) as counted
from tape.records r where r.journal = :journal and r.seq > :above order by r.seq limit :limit;

-- name: erase.postpone
-- unfenced: retention waits while a tree is erased
-- writes: retention
update tape.retention set due_at = greatest(due_at, tape.now_ms() + :delay_ms) where journal = :root;

-- name: erase.published
-- unfenced: only finished runs are erased
-- writes: published
update tape.published set value = :erased where run = :run;

-- name: erase.records
-- unfenced: only finished runs are erased, whose journals no holder appends to
-- writes: records
update tape.records r set body = i.value ->> 1 from json_array_elements(:rows::json) i(value)
where r.journal = :journal and r.seq = (i.value ->> 0)::bigint;

-- name: erase.replies
-- unfenced: only finished runs are erased
-- writes: replies
update tape.replies r set body = i.value ->> 1 from json_array_elements(:rows::json) i(value)
where r.journal = :run and r.n = (i.value ->> 0)::bigint;

-- name: erase.run
-- unfenced: only finished runs are erased
-- writes: runs
update tape.runs set labels = :labels where journal = :run;

-- name: erase.target
-- read
select r.root from tape.runs r where r.tenant = :tenant and r.id = :id;

-- name: erase.tree
-- read
-- The runs of a tree after one of them, in the order in which they were created.
select r.journal, r.id, r.labels from (select :root::bigint as journal union all
  select c.journal from tape.runs c where c.root = :root::bigint and c.root <> c.journal) x
cross join lateral (select r.journal, r.id, r.labels from tape.runs r where r.journal = x.journal and r.tenant = :tenant limit 1) r
where x.journal >= :from order by x.journal limit :limit;

-- name: erase.usage
-- unfenced: erased bytes no longer count as used, as far as they were measured
-- writes: quotas
update tape.quotas q set bytes_used = greatest(0, q.bytes_used - :bytes)
from tape.quotas d where d.tenant = '' and d.metered is not null and q.tenant = :tenant;

-- name: prune.blobs
-- unfenced: only finished runs are pruned
-- writes: blobs
delete from tape.blobs where journal = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.budgets
-- unfenced: only finished runs are pruned
-- writes: budgets
delete from tape.budgets where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.business_keys
-- unfenced: only finished runs are pruned
-- writes: business_keys
delete from tape.business_keys where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.chunks
-- unfenced: only finished runs are pruned
-- writes: chunks
delete from tape.chunks where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.doubt
-- read
-- Runs with something that is not settled: an obligation, or an effect that may happen or may have happened.
select i.run from (select json_array_elements_text(:runs::json)::bigint as run) i
where (select 1 from tape.effects e where e.run = i.run
  and e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN', 'COMPENSATED', 'DISCHARGED') limit 1) is not null;

-- name: prune.due
-- unfenced: what is deleted is no longer due
-- writes: retention
delete from tape.retention where journal = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.effects
-- unfenced: only finished runs are pruned
-- writes: effects
delete from tape.effects where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.find
-- read
-- Roots that ended long ago, together with their whole tree, and with nothing left to compensate. A tree is pruned as a
-- whole. With a position of the feed, only those without a record after it: a sink has not passed the others. The last
-- record of a journal has its last position. LIMIT 1 as in end_many: lookups instead of joins with all trees. Locked, because another process may prune at
-- the same moment: it takes the next ones.
select r.journal from tape.runs r
where r.tenant = :tenant and r.ended_at < :before and r.parent is null
  and (select 1 from tape.runs c
    where c.root = r.journal and c.root <> c.journal and (c.ended_at is null or c.ended_at >= :before) limit 1) is null
  and (select 1 from tape.effects e
    where e.root = r.journal and e.role = 'compensation' and e.status not in ('COMPENSATED', 'DISCHARGED') limit 1) is null
  and (:stamp::bigint is null or (select 1
    from (select r.journal union all select c.journal from tape.runs c where c.root = r.journal and c.root <> c.journal) m
    cross join lateral (select m.journal union all select i.journal from tape.leases i where i.run = m.journal and i.kind = 'item') j
    cross join lateral (values (j.journal), (-j.journal)) x(journal)
    cross join lateral (select h.stamp, h.journal, h.seq from tape.records h where h.journal = x.journal order by h.seq desc limit 1) h
    where (h.stamp, h.journal, h.seq) > (:stamp::bigint, :after_journal::bigint, :after_seq::bigint) limit 1) is null)
order by r.ended_at limit :limit
for update of r skip locked;

-- name: prune.gates
-- unfenced: only finished runs are pruned
-- writes: gates
delete from tape.gates where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.heads
-- read
-- The last record of every journal of these runs: their own, those of their items, and the inboxes of both. Records are
-- only appended, so equal numbers mean an unchanged tree. The stamp as text is a position of the feed.
select x.run, x.journal, h.seq, h.stamp || '.' || x.journal || '.' || h.seq as stamp
from (select json_array_elements_text(:runs::json)::bigint as run) i
cross join lateral (select i.run as journal union all select l.journal from tape.leases l where l.run = i.run and l.kind = 'item') j
cross join lateral (values (i.run, j.journal), (i.run, -j.journal)) x(run, journal)
cross join lateral (select h.stamp, h.seq from tape.records h where h.journal = x.journal order by h.seq desc limit 1) h;

-- name: prune.keys
-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
-- writes: note_keys
delete from tape.note_keys where journal = any(array(select x.journal
  from (select json_array_elements_text(:runs::json)::bigint as run) i cross join lateral (values (i.run), (-i.run)) x(journal)));

-- name: prune.labels
-- unfenced: only finished runs are pruned
-- writes: run_labels
delete from tape.run_labels where journal = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.leases
-- unfenced: a run's lease is deleted with the run; the tombstone keeps its token
-- writes: leases
delete from tape.leases where journal = any(array(select json_array_elements_text(:journals::json)::bigint));

-- name: prune.lock
-- read
-- The roots that still exist, locked: another process may prune at the same moment.
select r.journal from tape.runs r
where r.journal = any(array(select json_array_elements_text(:roots::json)::bigint)) and r.tenant = :tenant
order by r.journal for update;

-- name: prune.members
-- read
-- The runs of these trees, each tree in the order in which its runs were created.
with m as materialized (
  select i.root, x.journal from (select json_array_elements_text(:roots::json)::bigint as root) i
  cross join lateral (select i.root as journal union all
    select c.journal from tape.runs c where c.root = i.root and c.root <> c.journal) x)
select m.journal, m.root, r.tenant, r.id, r.workflow, r.version, r.phase, r.input_hash, r.labels, r.parent, r.created_at, r.ended_at, r.erased, l.token
from m
cross join lateral (select r.tenant, r.id, r.workflow, r.version, r.phase, r.input_hash, r.labels, r.parent, r.created_at, r.ended_at,
  coalesce(r.outcome = :erased::text, false) as erased from tape.runs r where r.journal = m.journal and r.tenant = :tenant limit 1) r
cross join lateral (select cast(l.token as text) as token from tape.leases l where l.journal = m.journal limit 1) l
order by m.root, m.journal;

-- name: prune.published
-- unfenced: only finished runs are pruned
-- writes: published
delete from tape.published where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.records
-- unfenced: only finished runs are pruned
-- writes: records
delete from tape.records where journal = any(array(select json_array_elements_text(:journals::json)::bigint));

-- name: prune.replies
-- unfenced: only finished runs are pruned
-- writes: replies
delete from tape.replies where journal = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.runs
-- unfenced: only finished runs are pruned
-- writes: runs
delete from tape.runs where journal = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.streams
-- unfenced: only finished runs are pruned
-- writes: streams
delete from tape.streams where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.timers
-- unfenced: only finished runs are pruned
-- writes: timers
delete from tape.timers where run = any(array(select json_array_elements_text(:runs::json)::bigint));

-- name: prune.tombstones
-- unfenced: only finished runs are pruned; the id is never started again
-- writes: tombstones
-- With the run's position in lists, so that a reader between two pages can continue after it.
insert into tape.tombstones(tenant, id, token, at, journal, created_at, ended_at, archive)
select r.tenant, r.id, l.token, tape.now_ms(), i.run, r.created_at, r.ended_at, :archive::text
from (select json_array_elements_text(:runs::json)::bigint as run) i
cross join lateral (select r.tenant, r.id, r.created_at, r.ended_at from tape.runs r where r.journal = i.run limit 1) r
cross join lateral (select l.token from tape.leases l where l.journal = i.run limit 1) l;

-- name: prune.usage
-- unfenced: deleted records no longer count as used, as far as they were measured
-- writes: quotas
update tape.quotas q set bytes_used = greatest(0, q.bytes_used - coalesce((select sum(octet_length(r.body))::bigint from tape.records r
    where r.stamp <= d.metered and r.journal = any(array(select json_array_elements_text(:journals::json)::bigint))), 0)
  - coalesce((select sum(b.bytes)::bigint from tape.blobs b
    where b.journal = any(array(select json_array_elements_text(:runs::json)::bigint)) and b.counted), 0))
from tape.quotas d
where d.tenant = '' and d.metered is not null and q.tenant = :tenant;

-- name: retention.archived
-- read
-- Runs that are in the archive, by id.
select id, journal, archive, at, created_at, ended_at from tape.tombstones
where tenant = :tenant and id > :above and (:id::text is null or id = :id) and archive is not null order by id limit :limit;

-- name: retention.blobs
-- read
select b.journal, b.blob, b.n, b.chunks, b.bytes, b.body from tape.blobs b
where b.journal = any(array(select json_array_elements_text(:runs::json)::bigint)) and (b.journal, b.blob, b.n) > (:after_run, :after_name, :after_n::bigint)
  and (select l.tenant from tape.leases l where l.journal = b.journal) = :tenant
order by b.journal, b.blob, b.n limit :limit;

-- name: retention.chunks
-- read
select c.run, c.stream, c.chunk_offset, c.part, cast(c.token as text) as token, c.at, c.body from tape.chunks c
where c.run = any(array(select json_array_elements_text(:runs::json)::bigint)) and (c.run, c.stream, c.chunk_offset) > (:after_run, :after_name, :after_n)
  and (select l.tenant from tape.leases l where l.journal = c.run) = :tenant
order by c.run, c.stream, c.chunk_offset limit :limit;

-- name: retention.drop
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
delete from tape.retention where tenant = :tenant and journal = any(array(select json_array_elements_text(:journals::json)::bigint));

-- name: retention.due
-- read
-- A run may have been pruned while it was dated.
select x.journal, x.due_at from tape.retention x where x.tenant = :tenant and x.due_at <= :until
  and exists (select 1 from tape.runs r where r.journal = x.journal)
order by x.due_at, x.journal limit :limit;

-- name: retention.figures
-- read
select (select min(x.due_at) from tape.retention x where x.tenant = :tenant) as first, tape.now_ms() as now;

-- name: retention.postpone
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
update tape.retention set due_at = :due_at
where tenant = :tenant and journal = any(array(select json_array_elements_text(:journals::json)::bigint));

-- name: retention.preview
-- read
-- What is due by a time, by workflow, of the first trees.
select r.workflow, count(*) as trees, min(r.ended_at) as ended_at, min(x.due_at) as due_at
from (select x.journal, x.due_at from tape.retention x where x.tenant = :tenant and x.due_at <= :until order by x.due_at limit :cap) x
cross join lateral (select r.workflow, r.ended_at from tape.runs r where r.journal = x.journal limit 1) r group by r.workflow order by r.workflow;

-- name: retention.put
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
insert into tape.retention(journal, tenant, due_at)
select (i ->> 0)::bigint, :tenant, (i ->> 1)::bigint from json_array_elements(:rows::json) i
on conflict(journal) do update set due_at = excluded.due_at where retention.due_at <> excluded.due_at;

-- name: retention.records
-- read
-- As they are stored, by journal and number.
select r.journal, r.seq, r.token, r.at, r.kind, r.body
from (select json_array_elements_text(:journals::json)::bigint as journal) i
cross join lateral (select r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body from tape.records r
  where r.journal = i.journal and (r.journal, r.seq) > (:after_journal, :after_seq) and r.seq <= :through order by r.seq limit :limit) r
where (select l.tenant from tape.leases l where l.journal = abs(i.journal)) = :tenant
order by r.journal, r.seq limit :limit;

-- name: retention.store
-- read
select store_id, epoch, tape.now_ms() as now from tape.meta;

-- name: retention.walk
-- read
-- Ended runs, the oldest first, with how long their code keeps them. A journal may continue after the run's end.
select r.journal, r.workflow, r.ended_at, r.parent, (select (h.body::json ->> 'retainMs')::bigint from tape.records h
  where h.journal = r.journal and h.kind = 'run.ended' and r.parent is null order by h.seq desc limit 1) as retain_ms
from tape.runs r where r.tenant = :tenant and r.ended_at < :until and r.ended_at >= :after_at and (r.ended_at, r.journal) > (:after_at, :after_journal)
order by r.ended_at, r.journal limit :limit;

-- macro: $after_stored
-- The journal of a position in the feed, as it is stored.
(sign(:after_journal) * bit_reverse(abs(:after_journal), true));

-- name: prune.blobs
-- unfenced: only finished runs are pruned
-- writes: blobs
delete from blobs where journal in unnest(:runs);

-- name: prune.budgets
-- unfenced: only finished runs are pruned
-- writes: budgets
delete from budgets where run in unnest(:runs);

-- name: prune.business_keys
-- unfenced: only finished runs are pruned
-- writes: business_keys
delete from business_keys where run in unnest(:runs);

-- name: prune.chunks
-- unfenced: only finished runs are pruned
-- writes: chunks
delete from chunks where run in unnest(:runs);

-- name: prune.doubt
-- read
-- Runs with something that is not settled: an obligation, or an effect that may happen or may have happened.
select distinct e.run from unnest(:runs) i join effects e on e.run = i
where e.status not in ('CONFIRMED', 'FAILED', 'WITHDRAWN', 'COMPENSATED', 'DISCHARGED');

-- name: prune.due
-- unfenced: what is deleted is no longer due
-- writes: retention
delete from retention where journal in unnest(:runs);

-- name: prune.effects
-- unfenced: only finished runs are pruned
-- writes: effects
delete from effects where run in unnest(:runs);

-- name: prune.find
-- read
-- Roots that ended long ago, together with their whole tree, and with nothing left to compensate. A tree is pruned as a
-- whole. With a position of the feed, only those without a record after it: a sink has not passed the others.
select j as journal from $shards s cross join unnest(array(
  select r.journal from runs@{force_index=runs_ended, $sparse} r
  where r.tenant = :tenant and r.shard = s and r.ended_at < :before and r.parent is null
    and not exists (select 1 from runs@{force_index=runs_tree, $sparse} c
      where c.under = r.journal and (c.ended_at is null or c.ended_at >= :before))
    and not exists (select 1 from effects@{force_index=effects_obligations, $sparse} e
      where e.owed = r.journal and e.status not in ('COMPENSATED', 'DISCHARGED'))
    and (:stamp is null or not exists (select 1
      from (select i.journal from leases i where i.journal = r.journal
        union all select i.journal from leases@{force_index=leases_items, $sparse} i where i.item_of = r.journal
        union all select c.journal from runs@{force_index=runs_tree, $sparse} c where c.under = r.journal
        union all select i.journal from runs@{force_index=runs_tree, $sparse} c join leases@{force_index=leases_items, $sparse} i on i.item_of = c.journal
          where c.under = r.journal) m
      join records h on h.journal = m.journal or h.journal = -m.journal
      where h.committed > timestamp_micros(:stamp) or (h.committed = timestamp_micros(:stamp)
        and (h.journal > $after_stored or (h.journal = $after_stored and h.seq > :after_seq)))))
  order by r.ended_at limit :limit)) j
join runs r on r.journal = j order by r.ended_at limit :limit;

-- name: prune.gates
-- unfenced: only finished runs are pruned
-- writes: gates
delete from gates where run in unnest(:runs);

-- name: prune.heads
-- read
-- The last record of every journal of these runs: their own, those of their items, and the inboxes of both. Records are
-- only appended, so equal numbers mean an unchanged tree. The stamp as text is a position of the feed.
select x.run, x.journal, r.seq, cast($stamp as string) || '.' || cast(x.side * bit_reverse(abs(x.journal), true) as string) || '.' || cast(r.seq as string) as stamp
from (select j.run, d * j.journal as journal, d as side from (
    select i as run, i as journal from unnest(:runs) i
    union all select l.item_of, l.journal from unnest(:runs) i join leases@{force_index=leases_items, $sparse} l on l.item_of = i) j
  cross join unnest([1, -1]) d) x
join records r on r.journal = x.journal and r.seq = (select max(m.seq) from records m where m.journal = x.journal);

-- name: prune.keys
-- unfenced: only finished runs are pruned. Negative: the keys of cancellations.
-- writes: note_keys
delete from note_keys where journal in unnest(:runs) or -journal in unnest(:runs);

-- name: prune.labels
-- unfenced: only finished runs are pruned
-- writes: run_labels
delete from run_labels where journal in unnest(:runs);

-- name: prune.leases
-- unfenced: a run's lease is deleted with the run; the tombstone keeps its token
-- writes: leases
delete from leases where journal in unnest(:journals);

-- name: prune.lock
-- read
-- The roots that still exist. What is read stays locked until our commit.
select r.journal from unnest(:roots) i join runs r on r.journal = i and r.tenant = :tenant;

-- name: prune.members
-- read
-- The runs of these trees, each tree in the order in which its runs were created.
select r.journal, r.root, r.tenant, r.id, r.workflow, r.version, r.phase, r.input_hash, r.labels, r.parent, r.created_at, r.ended_at,
  coalesce(r.outcome = :erased, false) as erased, cast(l.token as string) as token
from (select i as journal from unnest(:roots) i
  union all select c.journal from unnest(:roots) i join runs@{force_index=runs_tree, $sparse} c on c.under = i) x
join runs r on r.journal = x.journal and r.tenant = :tenant
join leases l on l.journal = x.journal order by bit_reverse(r.root, true), r.born;

-- name: prune.published
-- unfenced: only finished runs are pruned
-- writes: published
delete from published where run in unnest(:runs);

-- name: prune.records
-- unfenced: only finished runs are pruned
-- writes: records
delete from records where journal in unnest(:journals);

-- name: prune.replies
-- unfenced: only finished runs are pruned
-- writes: replies
delete from replies where journal in unnest(:runs);

-- name: prune.runs
-- unfenced: only finished runs are pruned
-- writes: runs
delete from runs where journal in unnest(:runs);

-- name: prune.streams
-- unfenced: only finished runs are pruned
-- writes: streams
delete from streams where run in unnest(:runs);

-- name: prune.timers
-- unfenced: only finished runs are pruned
-- writes: timers
delete from timers where run in unnest(:runs);

-- name: prune.tombstones
-- unfenced: only finished runs are pruned; the id is never started again
-- writes: tombstones
-- With the run's position in lists, so that a reader between two pages can continue after it.
insert into tombstones(tenant, id, token, `at`, journal, created_at, ended_at, archive)
select r.tenant, r.id, l.token, :at, r.journal, r.created_at, r.ended_at, :archive
from unnest(:runs) i join runs r on r.journal = i join leases l on l.journal = i;

-- name: prune.usage
-- unfenced: deleted records no longer count as used, as far as they were measured
-- writes: quotas
insert or update into quotas(tenant, runs, bytes, schedules, streams, metered, runs_used, runs_at, metered_at, bytes_used)
select q.tenant, q.runs, q.bytes, q.schedules, q.streams, q.metered, q.runs_used, q.runs_at, q.metered_at, greatest(0, q.bytes_used
  - coalesce((select sum(byte_length(r.body)) from records r where r.journal in unnest(:journals) and r.committed <= timestamp_micros(d.metered)), 0)
  - coalesce((select sum(b.bytes) from blobs b where b.journal in unnest(:runs) and b.counted), 0))
from quotas q join quotas d on d.tenant = '' and d.metered is not null
where q.tenant = :tenant;

-- name: retention.archived
-- read
-- Runs that are in the archive, by id.
select t.id, t.journal, t.archive, t.at, t.created_at, t.ended_at from tombstones t
where t.tenant = :tenant and t.id > :above and (:id is null or t.id = :id) and t.archive is not null order by t.id limit :limit;

-- name: retention.blobs
-- read
select b.journal, b.blob, b.n, b.chunks, b.bytes, b.body from blobs b join leases l on l.journal = b.journal and l.tenant = :tenant
where b.journal in unnest(:runs) and (l.born > :after_run or (l.born = :after_run and (b.blob > :after_name or (b.blob = :after_name and b.n > :after_n))))
order by l.born, b.blob, b.n limit :limit;

-- name: retention.chunks
-- read
select c.run, c.stream, c.chunk_offset, c.part, cast(c.token as string) as token, c.at, c.body
from chunks c join leases l on l.journal = c.run and l.tenant = :tenant
where c.run in unnest(:runs) and (l.born > :after_run or (l.born = :after_run and (c.stream > :after_name or (c.stream = :after_name and c.chunk_offset > :after_n))))
order by l.born, c.stream, c.chunk_offset limit :limit;

-- name: retention.drop
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
delete from retention where tenant = :tenant and journal in unnest(:journals);

-- name: retention.due
-- read
-- A run may have been pruned while it was dated.
select d.journal, d.due_at from $shards s cross join unnest(array(
  select as struct x.journal, x.due_at from retention@{force_index=retention_due} x
  where x.tenant = :tenant and x.shard = s and x.due_at <= :until and exists (select 1 from runs r where r.journal = x.journal)
  order by x.due_at limit :limit)) d
order by d.due_at, bit_reverse(d.journal, true) limit :limit;

-- name: retention.figures
-- read
select (select min(x.due_at) from retention@{force_index=retention_due} x where x.tenant = :tenant) as first, :at as now;

-- name: retention.postpone
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
update retention set due_at = :due_at where tenant = :tenant and journal in unnest(:journals);

-- name: retention.preview
-- read
-- What is due by a time, by workflow, of the first trees.
select r.workflow, count(*) as trees, min(r.ended_at) as ended_at, min(x.due_at) as due_at
from (select d.journal, d.due_at from $shards s cross join unnest(array(
    select as struct x.journal, x.due_at from retention@{force_index=retention_due} x
    where x.tenant = :tenant and x.shard = s and x.due_at <= :until order by x.due_at limit :cap)) d
  order by d.due_at limit :cap) x
join runs r on r.journal = x.journal group by r.workflow order by r.workflow;

-- name: retention.put
-- unfenced: the plan compares the fence of the lease `reactor retention` first
-- writes: retention
insert or update into retention(journal, tenant, due_at)
select x.journal, :tenant, x.due_at
from (select bit_reverse(cast(json_value(i, '$[0]') as int64), true) as journal, cast(json_value(i, '$[1]') as int64) as due_at from unnest(json_query_array(:rows)) i) x
left join retention v on v.journal = x.journal
where v.due_at is null or v.due_at <> x.due_at;

-- name: retention.records
-- read
-- As they are stored, by journal and number.
select r.journal, r.seq, cast(r.token as string) as token, r.at, r.kind, r.body
from (select r.journal, r.seq, r.token, r.at, r.kind, r.body, sign(r.journal) * bit_reverse(abs(r.journal), true) as number
  from records r where r.journal in unnest(:journals) and r.seq <= :through) r
where (r.number > :after_journal or (r.number = :after_journal and r.seq > :after_seq))
  and (select l.tenant from leases l where l.journal = abs(r.journal)) = :tenant
order by r.number, r.seq limit :limit;

-- name: retention.store
-- read
select store_id, epoch, :at as now from meta where one;

-- name: retention.walk
-- read
-- Ended runs, the oldest first, with how long their code keeps them. A journal may continue after the run's end.
select r.journal, r.workflow, r.ended_at, r.parent, case when r.parent is null then (select json_value(safe_convert_bytes_to_string(h.body), '$.retainMs') from records h
  where h.journal = r.journal and h.kind = 'run.ended' order by h.seq desc limit 1) end as retain_ms
from $shards s cross join unnest(array(select r.journal from runs@{force_index=runs_ended, $sparse} r
  where r.tenant = :tenant and r.shard = s and r.ended_at < :until and (r.ended_at > :after_at or (r.ended_at = :after_at and r.born > :after_journal))
  order by r.ended_at, r.born limit :limit)) j
join runs r on r.journal = j
order by r.ended_at, r.born limit :limit;

-- macro: $slot_state
-- The slot of the run with the lease `l`; null: it has none. Nothing is looked up for a lease without a queue.
case when l.queue is null then null else (select s.state from tape.queue_slots s where s.journal = l.journal) end as slot;

-- macro: $queue_name
-- The name of its queue; empty for the number 0.
case when l.queue is null then null else coalesce((select q.name from tape.queues q where q.id = l.queue), '') end as queue;

-- macro: $queue_id
-- The number of the queue with this name; 0 for the empty name, null for null.
case when :queue::text is null then null when :queue::text = '' then 0 else (select q.id from tape.queues q where q.tenant = :tenant and q.name = :queue::text) end;

-- macro: $in_queue
-- Whether the run of the lease that is updated waits in a queue, has left its slot, or starts later.
(leases.queue is not null and exists (select 1 from tape.queue_slots s where s.journal = leases.journal and s.state <> 'HELD'));

-- macro: $run_status
-- The status of the run `r` with the lease `l`.
(case when r.phase <> 'LIVE' then r.phase when l.owner is not null then 'RUNNING' when l.next_reactor is not null then 'RUNNABLE'
    when l.queue is not null and (select s.state from tape.queue_slots s where s.journal = l.journal) = 'QUEUED' then 'QUEUED'
    else 'WAITING' end);

-- name: lease.admit
-- unfenced: lease.take for a run that the same transaction has read, with the token that it computed
-- writes: leases
update tape.leases set token = :next_token, nonce = :nonce, owner = :owner, label = :label, reactor = :reactor, ttl_ms = :ttl_ms,
  expires_at = tape.now_ms() + :ttl_ms, acquired_at = tape.now_ms(), reason = :reason, renewals = 0, renewed_at = tape.now_ms(),
  longest_gap_ms = 0, progress = 0, progress_at = tape.now_ms(), progress_note = null, doomed = false, stalled = false, next_reactor = null,
  last_end_reason = case when owner is null then last_end_reason else 'expired' end
where journal = :journal and token = :token and tape.on_timeline();

-- name: partition.adjust
-- unfenced: the counters of a partition, with a change of a slot that its own statement allows
-- writes: queue_partitions
-- A partition that was empty gets the class of its first run, and continues at the queue's virtual time.
insert into tape.queue_partitions(queue, key, class, vtime, entered, running, waiting, weight)
values (:queue, :key, :class, (select q.vnow from tape.queues q where q.id = :queue), tape.now_ms(), :running, :waiting, coalesce(:weight, 1000))
on conflict(queue, key) do update set running = queue_partitions.running + excluded.running, waiting = queue_partitions.waiting + excluded.waiting,
  class = case when queue_partitions.waiting = 0 then excluded.class else least(queue_partitions.class, excluded.class) end,
  vtime = case when queue_partitions.waiting = 0 then greatest(queue_partitions.vtime, excluded.vtime) else queue_partitions.vtime end,
  entered = case when queue_partitions.waiting = 0 then excluded.entered else queue_partitions.entered end,
  weight = coalesce(:weight, queue_partitions.weight);

-- name: partition.admit
-- unfenced: with the slots that the same transaction grants
-- writes: queue_partitions
update tape.queue_partitions set running = running + :starts, waiting = waiting - :starts, vtime = :vtime, cap = :cap, tat = :tat,
  again_at = :again_at, class = coalesce((select s.class from tape.queue_slots s where s.queue = :queue and s.key = :key
    and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1), class)
where queue = :queue and key = :key;

-- name: partition.caps
-- unfenced: with a change of the queue's limits; only keys with runs in slots can be full
-- writes: queue_partitions
update tape.queue_partitions set cap = :cap where queue = :queue and busy;

-- name: partition.due
-- unfenced: the rate of these keys allows starts again
-- writes: queue_partitions
update tape.queue_partitions set again_at = null where queue = :queue and again_at <= tape.now_ms();

-- name: partition.list
-- read
select p.key, p.running, p.waiting, p.weight, p.pause, p.ready, p.tat, p.again_at as next_at,
  tape.now_ms() - (select min(x.since) from (select s.since from tape.queue_slots s where s.queue = p.queue and s.key = p.key
    and s.state = 'QUEUED' order by s.class, s.since limit 1) x) as wait_ms
from tape.queue_partitions p where p.queue = :queue and (:above::text is null or p.key > :above) order by p.key limit :limit;

-- name: partition.pause
-- unfenced: an operator's setting
-- writes: queue_partitions
insert into tape.queue_partitions(queue, key, class, vtime, pause)
values (:queue, :key, 5, (select q.vnow from tape.queues q where q.id = :queue), :pause)
on conflict(queue, key) do update set pause = :pause;

-- name: partition.ready
-- read
-- Keys whose first run could start here, in the order of their turns. A key whose first run is of a workflow that this
-- process does not have, or is pinned to another build, is left to others: `workflows` are named as $backlog_of names them.
select p.key, p.class, p.vtime, p.entered, p.running, p.weight, p.tat from tape.queue_partitions p
where p.queue = :queue and p.ready and p.class <= :max_class
  and (select $backlog_of from tape.queue_slots s
    cross join lateral (select l.workflow, l.build from tape.leases l where l.journal = s.journal limit 1) l where s.queue = p.queue and s.key = p.key
    and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1) = any(array(select json_array_elements_text(:workflows::json)))
order by p.class, p.vtime, p.entered, p.key limit :limit;

-- name: partition.reclass
-- unfenced: after a run has left its partition without a slot
-- writes: queue_partitions
update tape.queue_partitions set class = coalesce((select s.class from tape.queue_slots s where s.queue = :queue and s.key = :key
  and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1), class)
where queue = :queue and key = :key;

-- name: partition.return
-- unfenced: the counters of a partition, with a change of a slot that its own statement allows
-- writes: queue_partitions
update tape.queue_partitions set running = running + :running, waiting = waiting + :waiting where queue = :queue and key = :key;

-- name: partition.show
-- read
select p.running, p.waiting, p.pause, p.tat, p.again_at as next_at
from tape.queue_partitions p where p.queue = :queue and p.key = :key;

-- name: partition.sweep
-- unfenced: empty partitions whose turn and rate have passed mean the same as none, and old ones almost so
-- writes: queue_partitions
delete from tape.queue_partitions where queue = :queue and key in (
  select p.key from tape.queue_partitions p where p.queue = :queue and p.key > :above and p.key <= :until and p.running = 0
    and p.waiting = 0 and p.pause is null and (p.vtime <= :vnow or p.entered < tape.now_ms() - :older_ms) and p.tat <= tape.now_ms() * 1000 and p.again_at is null);

-- name: partition.sweep_range
-- read
-- The last of the next keys to sweep.
select max(x.key) as until from (select p.key from tape.queue_partitions p where p.queue = :queue and p.key > :above order by p.key limit :limit) x;

-- name: partition.unpaced
-- unfenced: with a change of the queue's limits: its keys have no rate any more
-- writes: queue_partitions
update tape.queue_partitions set again_at = null, tat = 0 where queue = :queue and again_at is not null;

-- name: queue.advance
-- unfenced: with the slots that the same transaction grants
-- writes: queues
update tape.queues set tat = :tat, vnow = greatest(vnow, :vnow), started = started + :starts where id = :id;

-- name: queue.busy
-- read
select coalesce(sum(p.running), 0)::bigint as running from tape.queue_partitions p where p.queue = :queue and p.busy;

-- name: queue.change
-- unfenced: a setting
-- writes: queues
update tape.queues set spec = :spec, override = :override, counts = :counts, concurrency = :concurrency, key_concurrency = :key_concurrency,
  rate_us = :rate_us, rate_burst = :rate_burst, key_rate_us = :key_rate_us, key_rate_burst = :key_rate_burst, version = version + 1
where id = :id;

-- name: queue.claim
-- read
-- The queue, for the process that admits runs. Others wait here until its commit: only the holder of this lock lets runs
-- in, and it counts them in a later statement. Without the lock 232 runs were in where 100 may be.
select q.id, q.name, q.concurrency, q.key_concurrency, q.rate_us, q.rate_burst, q.key_rate_us, q.key_rate_burst, q.tat, q.vnow, q.started,
  tape.now_ms() as now
from tape.queues q where q.tenant = :tenant and q.name = :name and q.pause is null
for no key update;

-- name: queue.count
-- read
select count(*) as n from tape.queues where tenant = :tenant;

-- name: queue.create
-- unfenced: a setting, written from outside a run
-- writes: queues
insert into tape.queues(id, tenant, name, spec, counts, concurrency, key_concurrency, rate_us, rate_burst, key_rate_us, key_rate_burst)
values (:id, :tenant, :name, :spec, :counts, :concurrency, :key_concurrency, :rate_us, :rate_burst, :key_rate_us, :key_rate_burst)
on conflict do nothing;

-- name: queue.find
-- read
select q.id, q.name, q.spec, q.override, q.counts, q.key_concurrency, q.version from tape.queues q where q.tenant = :tenant and q.name = :name;

-- name: queue.heads
-- read
-- The first runs of a key. A run without a token is held, and ends the list: no run passes another. A run that never had a
-- holder has one record.
select s.journal, s.class, s.expires, tape.now_ms() - s.since as waited_ms, l.workflow, l.build, l.notes, l.begins, l.owner, l.last_end_reason,
  case when l.owner is null or l.doomed or l.expires_at <= tape.now_ms() then cast(l.token as text) end as token,
  cast(greatest(l.token, (select token_floor from tape.meta)) + 1 as text) as next_token,
  case when l.token = 0 then 1 else (select max(r.seq) from tape.records r where r.journal = s.journal) end as head,
  case when l.token = 0 then (select r.body from tape.records r where r.journal = s.journal and r.seq = 1 and octet_length(r.body) <= 4096) end
    as created,
  (select r.id from tape.runs r where r.journal = s.journal) as run_id
from tape.queue_slots s cross join lateral (select l.journal, l.workflow, l.build, l.notes, l.begins, l.owner, l.last_end_reason, l.doomed,
  l.expires_at, l.token from tape.leases l where l.journal = s.journal limit 1) l
where s.queue = :queue and s.key = :key and s.state = 'QUEUED' order by s.class, s.since, s.journal limit :limit;

-- name: queue.in_use
-- read
-- Whether a run waits in the queue or holds a slot of it.
select exists (select 1 from tape.queue_partitions p where p.queue = :queue and (p.running > 0 or p.waiting > 0)) as used;

-- name: queue.lock
-- read
-- The queue, for a process that changes it.
select q.id, q.name, q.spec, q.override, q.counts, q.key_concurrency, q.version from tape.queues q where q.tenant = :tenant and q.name = :name
for update;

-- name: queue.open
-- read
-- Whether the queue may have a run to admit. Without a lock: a transaction that finds none would be in vain.
select q.id from tape.queues q where q.tenant = :tenant and q.name = :name and q.pause is null
  and (q.concurrency is null or q.concurrency > (select coalesce(sum(b.running), 0) from tape.queue_partitions b where b.queue = q.id and b.busy))
  and (exists (select 1 from tape.queue_partitions p where p.queue = q.id and p.ready)
    or exists (select 1 from tape.queue_partitions p where p.queue = q.id and p.again_at is not null and p.again_at <= tape.now_ms()));

-- name: queue.pause
-- unfenced: an operator's setting
-- writes: queues
update tape.queues set pause = :pause, version = version + 1 where id = :id;

-- name: queue.show
-- read
-- Queues of one tenant, by name. At most ten thousand keys of each are counted, and the waits of at most a hundred.
select q.id, q.name, q.version, q.spec, q.override, q.pause, q.tat, q.rate_us, q.rate_burst, q.started, tape.now_ms() as now, 0 as ahead,
  (select coalesce(sum(p.running), 0)::bigint from tape.queue_partitions p where p.queue = q.id and p.busy) as running,
  (select coalesce(sum(x.waiting), 0)::bigint from (select p.waiting from tape.queue_partitions p where p.queue = q.id limit 10000) x) as waiting,
  (select count(*) from (select 1 from tape.queue_partitions p where p.queue = q.id limit 10000) x) as keys,
  tape.now_ms() - (select min(x.since) from (select (select s.since from tape.queue_slots s where s.queue = q.id and s.key = p.key and s.state = 'QUEUED'
      order by s.class, s.since limit 1) as since
    from (select p.key from tape.queue_partitions p where p.queue = q.id and p.waiting > 0 limit 100) p) x) as wait_ms
from tape.queues q where q.tenant = :tenant and q.name > :above and (:name::text is null or q.name = :name) order by q.name limit :limit;

-- name: slot.admit
-- unfenced: with the term that the same transaction grants
-- writes: queue_slots
update tape.queue_slots set state = 'HELD', since = tape.now_ms() where journal = :journal and coalesce(state, '') = 'QUEUED'; -- not by the index of waiting runs, which knows no journal

-- name: slot.ahead
-- read
-- How many runs of the same key come first, counted up to :limit.
select count(*) as n from (select 1 from tape.queue_slots s where s.queue = :queue and s.key = :key and s.state = 'QUEUED'
  and (s.class, s.since, s.journal) < (:class, :since, :journal) limit :limit) x;

-- name: slot.assert_unnested
-- read
-- Returns a row unless the run, or one above it, keeps a slot that a child in this queue and key could wait for.
with recursive above(journal, parent) as (
  select r.journal, r.parent from tape.runs r where r.journal = :journal
  union all select r.journal, r.parent from above a join tape.runs r on r.journal = a.parent)
select 1 as ok where not exists (
  select 1 from above a join tape.queue_slots s on s.journal = any (array[a.journal]) join tape.queues q on q.id = s.queue
  where q.tenant = :tenant and q.name = :queue and s.keeps and coalesce(s.state, '') = 'HELD' and (q.concurrency is not null or s.key = :key));

-- name: slot.blockers
-- read
-- The run, what it waits for, what that waits for, and so on: the open children of a run that waits, and the holders of
-- the slots that a queued run needs. A deadline or an expiry ends a run; it does not let it continue.
with recursive reach(journal) as (
  select :journal::bigint
  union select x.journal from reach d cross join lateral (
    select c.journal from (select l.owner, l.next_reactor from tape.leases l where l.journal = d.journal limit 1) l
      cross join lateral (select c.journal from tape.runs c where c.parent = d.journal and c.ended_at is null limit :limit) c
    where l.owner is null and l.next_reactor is null
    union all select h.journal from (select s.queue, s.key, s.state from tape.queue_slots s where s.journal = d.journal limit 1) s
      cross join lateral (select q.concurrency from tape.queues q where q.id = s.queue limit 1) q
      cross join lateral (select h.journal, h.key from tape.queue_slots h where h.queue = s.queue and h.state = 'HELD' limit :limit) h
    where s.state = 'QUEUED' and (q.concurrency is not null or h.key = s.key)) x)
select d.journal, r.id, r.parent, s.name as queue, s.key, s.state, s.concurrency, s.key_concurrency,
  (r.phase <> 'LIVE' or l.owner is not null or l.next_reactor is not null
    or (select 1 from tape.timers t where t.run = d.journal and coalesce(t.status, '') = 'SET' and t.purpose not in ('deadline', 'expire') limit 1) = 1
    or (select 1 from tape.gates g where g.run = d.journal and coalesce(g.status, '') = 'OPEN' limit 1) = 1
    or (select 1 from tape.effects e where e.run = d.journal and e.role = 'effect'
      and coalesce(e.status, '') in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK') limit 1) = 1) is true as moves
from (select x.journal from reach x limit :limit) d
  cross join lateral (select r.id, r.parent, r.phase from tape.runs r where r.journal = d.journal and r.tenant = :tenant limit 1) r
  cross join lateral (select l.owner, l.next_reactor from tape.leases l where l.journal = d.journal limit 1) l
  left join lateral (select q.name, s.key, s.state, q.concurrency, q.key_concurrency
    from tape.queue_slots s left join tape.queues q on q.id = s.queue where s.journal = d.journal limit 1) s on true;

-- name: slot.create
-- unfenced: the slot of a run that is created in the same transaction
-- writes: queue_slots
insert into tape.queue_slots(journal, queue, key, class, since, state, keeps, expires)
select :journal::bigint, q.id, :key::text, :class::bigint, tape.now_ms(), :state::text, q.counts = 'started', :expires::boolean from tape.queues q
where q.tenant = :tenant and q.name = :queue
union all select :journal::bigint, 0, '', :class::bigint, tape.now_ms(), :state::text, false, false where :queue = ''
returning queue;

-- name: slot.delete
-- unfenced: under the lock of the run's lease, with the record or note that ends its place in the queue
-- writes: queue_slots
delete from tape.queue_slots where journal = :journal;

-- name: slot.held
-- read
-- Runs that hold slots of a queue, key by key.
select s.journal, s.key, s.class, s.state, tape.now_ms() - s.since as since_ms, r.id, r.workflow, r.phase,
  l.owner as lease_owner, l.next_reactor as lease_next_reactor, s.state as slot
from (select s.journal, s.key, s.class, s.since, s.state from tape.queue_slots s where s.queue = :queue and s.state = 'HELD'
    and s.key >= :from_key and s.key <= :to_key order by s.key, s.since, s.journal limit :limit) s
  join tape.runs r on r.journal = s.journal join tape.leases l on l.journal = s.journal
order by s.key, s.since, s.journal;

-- name: slot.waiting
-- read
-- Runs that wait in a queue, key by key in their order.
select s.journal, s.key, s.class, s.state, tape.now_ms() - s.since as since_ms, r.id, r.workflow, r.phase,
  l.owner as lease_owner, l.next_reactor as lease_next_reactor, s.state as slot
from (select s.journal, s.key, s.class, s.since, s.state from tape.queue_slots s where s.queue = :queue and s.state = 'QUEUED'
    and s.key >= :from_key and s.key <= :to_key order by s.key, s.class, s.since, s.journal limit :limit) s
  join tape.runs r on r.journal = s.journal join tape.leases l on l.journal = s.journal
order by s.key, s.class, s.since, s.journal;

-- name: slot.read
-- read
select s.journal, s.queue, s.key, s.class, s.since, s.state, s.keeps, s.expires from tape.queue_slots s where s.journal = :journal;

-- name: slot.set
-- unfenced: under the lock of the run's lease, with the record or note that changes its place in the queue
-- writes: queue_slots
update tape.queue_slots set state = :state, class = :class, since = tape.now_ms() where journal = :journal;

-- name: slot.show
-- read
select r.id, r.workflow, s.journal, s.queue, s.key, s.class, s.since, s.state, tape.now_ms() - s.since as since_ms, q.name
from tape.runs r join tape.queue_slots s on s.journal = r.journal left join tape.queues q on q.id = s.queue
where r.tenant = :tenant and r.id = :id;

-- name: timer.move
-- unfenced: a debounced run starts later; only while its timer has not fired
-- writes: timers
-- The slot has the time of the first start.
update tape.timers set due_at = least(tape.now_ms() + :delay_ms, (select s.since from tape.queue_slots s where s.journal = :run) + :max_delay_ms::bigint)
where run = :run and pos = 0 and purpose = 'start' and status = 'SET';

-- name: timers.unexpire
-- unfenced: with the slot that the same transaction grants: a run that has started does not expire
-- writes: timers
update tape.timers set status = 'CANCELLED' where run = :run and pos = 0 and purpose = 'expire' and status = 'SET';

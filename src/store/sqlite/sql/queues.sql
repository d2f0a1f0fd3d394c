-- macro: $slot_state
-- The slot of the run with the lease `l`; null: it has none. Nothing is looked up for a lease without a queue.
case when l.queue is null then null else (select s.state from queue_slots s where s.journal = l.journal) end as slot;

-- macro: $queue_name
-- The name of its queue; empty for the number 0.
case when l.queue is null then null else coalesce((select q.name from queues q where q.id = l.queue), '') end as queue;

-- macro: $queue_id
-- The number of the queue with this name; 0 for the empty name, null for null.
case when :queue is null then null when :queue = '' then 0 else (select q.id from queues q where q.tenant = :tenant and q.name = :queue) end;

-- macro: $in_queue
-- Whether the run of the lease that is updated waits in a queue, has left its slot, or starts later.
(leases.queue is not null and exists (select 1 from queue_slots s where s.journal = leases.journal and s.state <> 'HELD'));

-- macro: $run_status
-- The status of the run `r` with the lease `l`.
(case when r.phase <> 'LIVE' then r.phase when l.owner is not null then 'RUNNING' when l.next_reactor is not null then 'RUNNABLE'
    when l.queue is not null and exists (select 1 from queue_slots s where s.journal = l.journal and s.state = 'QUEUED') then 'QUEUED'
    else 'WAITING' end);

-- name: lease.admit
-- unfenced: lease.take for a run that the same transaction has read, with the token that it computed
-- writes: leases
-- RETURNING would build a temporary table, which costs as much as the rest.
update leases set token = :next_token, nonce = :nonce, owner = :owner, label = :label, reactor = :reactor, ttl_ms = :ttl_ms,
  expires_at = :now + :ttl_ms, acquired_at = :now, reason = :reason, renewals = 0, renewed_at = :now, longest_gap_ms = 0, progress = 0,
  progress_at = :now, progress_note = null, doomed = 0, stalled = 0, next_reactor = null,
  last_end_reason = case when owner is null then last_end_reason else 'expired' end
where journal = :journal and token = :token;

-- name: partition.adjust
-- unfenced: the counters of a partition, with a change of a slot that its own statement allows
-- writes: queue_partitions
-- A partition that was empty gets the class of its first run, and continues at the queue's virtual time.
insert into queue_partitions(queue, key, class, vtime, entered, running, waiting, weight)
values (:queue, :key, :class, (select q.vnow from queues q where q.id = :queue), :steady, :running, :waiting, coalesce(:weight, 1000))
on conflict(queue, key) do update set running = running + excluded.running, waiting = waiting + excluded.waiting,
  class = case when waiting = 0 then excluded.class else min(class, excluded.class) end,
  vtime = case when waiting = 0 then max(vtime, excluded.vtime) else vtime end,
  entered = case when waiting = 0 then excluded.entered else entered end,
  weight = coalesce(:weight, weight);

-- name: partition.admit
-- unfenced: with the slots that the same transaction grants
-- writes: queue_partitions
update queue_partitions set running = running + :starts, waiting = waiting - :starts, vtime = :vtime, cap = :cap, tat = :tat,
  again_at = :again_at, class = coalesce((select s.class from queue_slots s where s.queue = :queue and s.key = :key
    and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1), class)
where queue = :queue and key = :key;

-- name: partition.caps
-- unfenced: with a change of the queue's limits; only keys with runs in slots can be full
-- writes: queue_partitions
update queue_partitions set cap = :cap where queue = :queue and busy = 1;

-- name: partition.due
-- unfenced: the rate of these keys allows starts again
-- writes: queue_partitions
update queue_partitions set again_at = null where queue = :queue and again_at <= :steady;

-- name: partition.list
-- read
select p.key, p.running, p.waiting, p.weight, p.pause, p.ready, p.tat, p.again_at + :at - :steady as next_at,
  :steady - (select min(x.since) from (select s.since from queue_slots s where s.queue = p.queue and s.key = p.key
    and s.state = 'QUEUED' order by s.class, s.since limit 1) x) as wait_ms
from queue_partitions p where p.queue = :queue and (:above is null or p.key > :above) order by p.key limit :limit;

-- name: partition.pause
-- unfenced: an operator's setting
-- writes: queue_partitions
insert into queue_partitions(queue, key, class, vtime, pause)
values (:queue, :key, 5, (select q.vnow from queues q where q.id = :queue), :pause)
on conflict(queue, key) do update set pause = :pause;

-- name: partition.ready
-- read
-- Keys whose first run could start here, in the order of their turns. A key whose first run is of a workflow that this
-- process does not have, or is pinned to another build, is left to others: `workflows` are named as $backlog_of names them.
select p.key, p.class, p.vtime, p.entered, p.running, p.weight, p.tat from queue_partitions p
where p.queue = :queue and p.ready = 1 and p.class <= :max_class
  and (select $backlog_of from queue_slots s cross join leases l on l.journal = s.journal where s.queue = p.queue and s.key = p.key
    and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1) in (select w.value from json_each(:workflows) w)
order by p.class, p.vtime, p.entered, p.key limit :limit;

-- name: partition.reclass
-- unfenced: after a run has left its partition without a slot
-- writes: queue_partitions
update queue_partitions set class = coalesce((select s.class from queue_slots s where s.queue = :queue and s.key = :key
  and s.state = 'QUEUED' order by s.class, s.since, s.journal limit 1), class)
where queue = :queue and key = :key;

-- name: partition.return
-- unfenced: the counters of a partition, with a change of a slot that its own statement allows
-- writes: queue_partitions
update queue_partitions set running = running + :running, waiting = waiting + :waiting where queue = :queue and key = :key;

-- name: partition.show
-- read
select p.running, p.waiting, p.pause, p.tat, p.again_at + :at - :steady as next_at
from queue_partitions p where p.queue = :queue and p.key = :key;

-- name: partition.sweep
-- unfenced: empty partitions whose turn and rate have passed mean the same as none, and old ones almost so
-- writes: queue_partitions
delete from queue_partitions where queue = :queue and key in (
  select p.key from queue_partitions p where p.queue = :queue and p.key > :above and p.key <= :until and p.running = 0
    and p.waiting = 0 and p.pause is null and (p.vtime <= :vnow or p.entered < :steady - :older_ms) and p.tat <= :steady * 1000 and p.again_at is null);

-- name: partition.sweep_range
-- read
-- The last of the next keys to sweep.
select max(x.key) as until from (select p.key from queue_partitions p where p.queue = :queue and p.key > :above order by p.key limit :limit) x;

-- name: partition.unpaced
-- unfenced: with a change of the queue's limits: its keys have no rate any more
-- writes: queue_partitions
update queue_partitions set again_at = null, tat = 0 where queue = :queue and again_at is not null;

-- name: queue.advance
-- unfenced: with the slots that the same transaction grants
-- writes: queues
update queues set tat = :tat, vnow = max(vnow, :vnow), started = started + :starts where id = :id;

-- name: queue.busy
-- read
select coalesce(sum(p.running), 0) as running from queue_partitions p where p.queue = :queue and p.busy = 1;

-- name: queue.change
-- unfenced: a setting
-- writes: queues
update queues set spec = :spec, override = :override, counts = :counts, concurrency = :concurrency, key_concurrency = :key_concurrency,
  rate_us = :rate_us, rate_burst = :rate_burst, key_rate_us = :key_rate_us, key_rate_burst = :key_rate_burst, version = version + 1
where id = :id;

-- name: queue.claim
-- read
-- The queue, for the process that admits runs. No other writes before our commit.
select q.id, q.name, q.concurrency, q.key_concurrency, q.rate_us, q.rate_burst, q.key_rate_us, q.key_rate_burst, q.tat, q.vnow, q.started,
  :steady as now
from queues q where q.tenant = :tenant and q.name = :name and q.pause is null;

-- name: queue.count
-- read
select count(*) as n from queues where tenant = :tenant;

-- name: queue.create
-- unfenced: a setting, written from outside a run
-- writes: queues
insert into queues(id, tenant, name, spec, counts, concurrency, key_concurrency, rate_us, rate_burst, key_rate_us, key_rate_burst)
values (:id, :tenant, :name, :spec, :counts, :concurrency, :key_concurrency, :rate_us, :rate_burst, :key_rate_us, :key_rate_burst)
on conflict do nothing;

-- name: queue.find
-- read
select q.id, q.name, q.spec, q.override, q.counts, q.key_concurrency, q.version from queues q where q.tenant = :tenant and q.name = :name;

-- name: queue.heads
-- read
-- The first runs of a key. A run without a token is held, and ends the list: no run passes another. A run that never had a
-- holder has one record.
select s.journal, s.class, s.expires, :steady - s.since as waited_ms, l.workflow, l.build, l.notes, l.begins, l.owner, l.last_end_reason,
  case when l.owner is null or l.doomed or l.expires_at <= :now then cast(l.token as text) end as token,
  cast(max(l.token, (select token_floor from meta)) + 1 as text) as next_token,
  case when l.token = 0 then 1 else (select max(r.seq) from records r where r.journal = s.journal) end as head,
  case when l.token = 0 then (select r.body from records r where r.journal = s.journal and r.seq = 1 and length(r.body) <= 4096) end as created,
  (select r.id from runs r where r.journal = s.journal) as run_id
from queue_slots s cross join leases l on l.journal = s.journal
where s.queue = :queue and s.key = :key and s.state = 'QUEUED' order by s.class, s.since, s.journal limit :limit;

-- name: queue.in_use
-- read
-- Whether a run waits in the queue or holds a slot of it.
select exists (select 1 from queue_partitions p where p.queue = :queue and (p.running > 0 or p.waiting > 0)) as used;

-- name: queue.lock
-- read
-- The queue, for a process that changes it.
select q.id, q.name, q.spec, q.override, q.counts, q.key_concurrency, q.version from queues q where q.tenant = :tenant and q.name = :name;

-- name: queue.pause
-- unfenced: an operator's setting
-- writes: queues
update queues set pause = :pause, version = version + 1 where id = :id;

-- name: queue.show
-- read
-- Queues of one tenant, by name. At most ten thousand keys of each are counted, and the waits of at most a hundred.
select q.id, q.name, q.version, q.spec, q.override, q.pause, q.tat, q.rate_us, q.rate_burst, q.started, :steady as now, :at - :steady as ahead,
  (select coalesce(sum(p.running), 0) from queue_partitions p where p.queue = q.id and p.busy = 1) as running,
  (select coalesce(sum(x.waiting), 0) from (select p.waiting from queue_partitions p where p.queue = q.id limit 10000) x) as waiting,
  (select count(*) from (select 1 from queue_partitions p where p.queue = q.id limit 10000) x) as keys,
  :steady - (select min(x.since) from (select (select s.since from queue_slots s where s.queue = q.id and s.key = p.key and s.state = 'QUEUED'
      order by s.class, s.since limit 1) as since
    from (select p.key from queue_partitions p where p.queue = q.id and p.waiting > 0 limit 100) p) x) as wait_ms
from queues q where q.tenant = :tenant and q.name > :above and (:name is null or q.name = :name) order by q.name limit :limit;

-- name: slot.admit
-- unfenced: with the term that the same transaction grants
-- writes: queue_slots
update queue_slots set state = 'HELD', since = :steady where journal = :journal and state = 'QUEUED';

-- name: slot.ahead
-- read
-- How many runs of the same key come first, counted up to :limit.
select count(*) as n from (select 1 from queue_slots s where s.queue = :queue and s.key = :key and s.state = 'QUEUED'
  and (s.class, s.since, s.journal) < (:class, :since, :journal) limit :limit) x;

-- name: slot.assert_unnested
-- read
-- Returns a row unless the run, or one above it, keeps a slot that a child in this queue and key could wait for.
with recursive above(journal, parent) as (
  select r.journal, r.parent from runs r where r.journal = :journal
  union all select r.journal, r.parent from above d cross join runs r on r.journal = d.parent)
select 1 as ok where not exists (
  select 1 from above d cross join queue_slots s on s.journal = d.journal cross join queues q on q.id = s.queue
  where q.tenant = :tenant and q.name = :queue and s.keeps = 1 and s.state = 'HELD' and (q.concurrency is not null or s.key = :key));

-- name: slot.blockers
-- read
-- The run, what it waits for, what that waits for, and so on: the open children of a run that waits, and the holders of
-- the slots that a queued run needs. A deadline or an expiry ends a run; it does not let it continue.
with recursive reach(journal) as (
  select :journal
  union select c.journal from reach d cross join leases l on l.journal = d.journal cross join runs c on c.parent = d.journal
  where l.owner is null and l.next_reactor is null and c.ended_at is null
  union select h.journal from reach d cross join queue_slots s on s.journal = d.journal cross join queues q on q.id = s.queue
    cross join queue_slots h on h.queue = s.queue
  where s.state = 'QUEUED' and h.state = 'HELD' and (q.concurrency is not null or h.key = s.key)
  limit :limit)
select r.journal, r.id, r.parent, q.name as queue, s.key, s.state, q.concurrency, q.key_concurrency,
  (r.phase <> 'LIVE' or l.owner is not null or l.next_reactor is not null
    or exists (select 1 from timers t where t.run = r.journal and t.status = 'SET' and t.purpose not in ('deadline', 'expire'))
    or exists (select 1 from gates g where g.run = r.journal and g.status = 'OPEN')
    or exists (select 1 from effects e where e.run = r.journal and e.role = 'effect'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))) as moves
from reach d cross join runs r on r.journal = d.journal cross join leases l on l.journal = d.journal
  left join queue_slots s on s.journal = d.journal left join queues q on q.id = s.queue
where r.tenant = :tenant;

-- name: slot.create
-- unfenced: the slot of a run that is created in the same transaction
-- writes: queue_slots
insert into queue_slots(journal, queue, key, class, since, state, keeps, expires)
select :journal, q.id, :key, :class, :steady, :state, q.counts = 'started', :expires from queues q
where q.tenant = :tenant and q.name = :queue
union all select :journal, 0, '', :class, :steady, :state, 0, 0 where :queue = ''
returning queue;

-- name: slot.delete
-- unfenced: under the lock of the run's lease, with the record or note that ends its place in the queue
-- writes: queue_slots
delete from queue_slots where journal = :journal;

-- name: slot.held
-- read
-- Runs that hold slots of a queue, key by key.
select x.journal, x.key, x.class, x.state, :steady - x.since as since_ms, r.id, r.workflow, r.phase,
  l.owner as lease_owner, l.next_reactor as lease_next_reactor, x.state as slot
from (select s.journal, s.key, s.class, s.since, s.state from queue_slots s where s.queue = :queue and s.state = 'HELD'
    and s.key >= :from_key and s.key <= :to_key order by s.key, s.since, s.journal limit :limit) x
  cross join runs r on r.journal = x.journal cross join leases l on l.journal = x.journal;

-- name: slot.waiting
-- read
-- Runs that wait in a queue, key by key in their order.
select x.journal, x.key, x.class, x.state, :steady - x.since as since_ms, r.id, r.workflow, r.phase,
  l.owner as lease_owner, l.next_reactor as lease_next_reactor, x.state as slot
from (select s.journal, s.key, s.class, s.since, s.state from queue_slots s where s.queue = :queue and s.state = 'QUEUED'
    and s.key >= :from_key and s.key <= :to_key order by s.key, s.class, s.since, s.journal limit :limit) x
  cross join runs r on r.journal = x.journal cross join leases l on l.journal = x.journal;

-- name: slot.read
-- read
select s.journal, s.queue, s.key, s.class, s.since, s.state, s.keeps, s.expires from queue_slots s where s.journal = :journal;

-- name: slot.set
-- unfenced: under the lock of the run's lease, with the record or note that changes its place in the queue
-- writes: queue_slots
update queue_slots set state = :state, class = :class, since = :steady where journal = :journal;

-- name: slot.show
-- read
select r.id, r.workflow, s.journal, s.queue, s.key, s.class, s.since, s.state, :steady - s.since as since_ms, q.name
from runs r cross join queue_slots s on s.journal = r.journal left join queues q on q.id = s.queue
where r.tenant = :tenant and r.id = :id;

-- name: timer.move
-- unfenced: a debounced run starts later; only while its timer has not fired
-- writes: timers
-- The slot has the time of the first start.
update timers set due_at = min(:steady + :delay_ms, coalesce((select s.since from queue_slots s where s.journal = :run) + :max_delay_ms, :steady + :delay_ms))
where run = :run and pos = 0 and purpose = 'start' and status = 'SET';

-- name: timers.unexpire
-- unfenced: with the slot that the same transaction grants: a run that has started does not expire
-- writes: timers
update timers set status = 'CANCELLED' where run = :run and pos = 0 and purpose = 'expire' and status = 'SET';

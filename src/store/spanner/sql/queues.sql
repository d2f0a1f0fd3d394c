-- macro: $slot_state
-- The slot of the run with the lease `l`; null: it has none. Nothing is looked up for a lease without a queue.
case when l.queue is null then null else (select s.state from queue_slots s where s.journal = l.journal) end as slot;

-- macro: $queue_name
-- The name of its queue; empty for the number 0.
case when l.queue is null then null else coalesce((select q.name from queues q where q.id = l.queue), '') end as queue;

-- macro: $queue_id
-- The number of the queue with this name; 0 for the empty name, null for null.
case when :queue is null then null when :queue = '' then 0 else (select q.id from queues@{force_index=queues_name} q where q.tenant = :tenant and q.name = :queue) end;

-- macro: $in_queue
-- Whether the run of the lease that is updated waits in a queue, has left its slot, or starts later.
(leases.queue is not null and exists (select 1 from seen_slots s where s.journal = leases.journal and s.state <> 'HELD'));

-- macro: $first_class
-- The class of the first run that waits in the partition that is updated.
coalesce((select s.class from seen_slots s where s.queue = :queue and s.key = :key and s.state = 'QUEUED'
    order by s.class, s.since, s.born limit 1), class);

-- macro: $running_in
-- How many runs of the queue `q` have a slot.
(select coalesce(sum(p.running), 0) from queue_partitions@{force_index=queue_partitions_busy, $sparse} p where p.busy = q.id);

-- name: lease.admit
-- unfenced: lease.take for a run that the same transaction has read, with the token that it computed
-- writes: leases
update leases set token = :next_token, nonce = :nonce, owner = :owner, label = :label, reactor = :reactor, ttl_ms = :ttl_ms,
  expires_at = :now + :ttl_ms, acquired_at = :now, reason = :reason, renewals = 0, renewed_at = :now, longest_gap_ms = 0, progress = 0,
  progress_at = :now, progress_note = null, doomed = false, stalled = false, next_reactor = null,
  last_end_reason = case when owner is null then last_end_reason else 'expired' end
where journal = :journal and token = :token;

-- name: partition.adjust
-- unfenced: the counters of a partition, with a change of a slot that its own statement allows
-- writes: queue_partitions
-- A partition that was empty gets the class of its first run, and continues at the queue's virtual time. An upsert names
-- every column: the emulator resets the others.
insert or update into queue_partitions(queue, key, running, waiting, class, vtime, entered, weight, tat, cap, again_at, pause)
select x.queue, x.key, coalesce(v.running, 0) + :running, coalesce(v.waiting, 0) + :waiting,
  case when coalesce(v.waiting, 0) = 0 then :class else least(v.class, :class) end,
  case when v.key is null then x.vnow when v.waiting = 0 then greatest(v.vtime, x.vnow) else v.vtime end,
  case when coalesce(v.waiting, 0) = 0 then :steady else v.entered end,
  coalesce(:weight, v.weight, 1000), coalesce(v.tat, 0), v.cap, v.again_at, v.pause
from (select :queue as queue, :key as key, (select q.vnow from queues q where q.id = :queue) as vnow) x
left join queue_partitions v on v.queue = x.queue and v.key = x.key;

-- name: partition.admit
-- unfenced: with the slots that the same transaction grants
-- writes: queue_partitions
update queue_partitions set running = running + :starts, waiting = waiting - :starts, vtime = :vtime, cap = :cap, tat = :tat,
  again_at = :again_at, class = $first_class
where queue = :queue and key = :key;

-- name: partition.caps
-- unfenced: with a change of the queue's limits; only keys with runs in slots can be full
-- writes: queue_partitions
update queue_partitions set cap = :cap where queue = :queue and running > 0;

-- name: partition.due
-- unfenced: the rate of these keys allows starts again
-- writes: queue_partitions
update queue_partitions set again_at = null where queue = :queue and again_at <= :steady;

-- name: partition.list
-- read
select p.key, p.running, p.waiting, p.weight, p.pause, p.ready is not null as ready, p.tat, p.again_at as next_at,
  :steady - (select s.since from queue_slots@{force_index=queue_slots_waiting, $sparse} s where s.queued = p.queue and s.key = p.key
    order by s.class, s.since limit 1) as wait_ms
from queue_partitions p where p.queue = :queue and (:above is null or p.key > :above) order by p.key limit :limit;

-- name: partition.pause
-- unfenced: an operator's setting
-- writes: queue_partitions
insert or update into queue_partitions(queue, key, class, vtime, pause, entered, running, waiting, weight, tat, cap, again_at)
select x.queue, x.key, coalesce(v.class, 5), coalesce(v.vtime, (select q.vnow from queues q where q.id = :queue)), :pause,
  coalesce(v.entered, 0), coalesce(v.running, 0), coalesce(v.waiting, 0), coalesce(v.weight, 1000), coalesce(v.tat, 0), v.cap, v.again_at
from (select :queue as queue, :key as key) x left join queue_partitions v on v.queue = x.queue and v.key = x.key;

-- name: partition.ready
-- read
-- Keys whose first run could start here, in the order of their turns. A key whose first run is of a workflow that this
-- process does not have, or is pinned to another build, is left to others: `workflows` are named as $backlog_of names them.
select p.key, p.class, p.vtime, p.entered, p.running, p.weight, p.tat from queue_partitions@{force_index=queue_partitions_ready, $sparse} p
where p.ready = :queue and p.class <= :max_class
  and (select $backlog_of from queue_slots@{force_index=queue_slots_waiting, $sparse} s join leases l on l.journal = s.journal
    where s.queued = p.queue and s.key = p.key order by s.class, s.since, s.born limit 1) in unnest(json_value_array(:workflows))
order by p.class, p.vtime, p.entered, p.key limit :limit;

-- name: partition.reclass
-- unfenced: after a run has left its partition without a slot
-- writes: queue_partitions
update queue_partitions set class = $first_class where queue = :queue and key = :key;

-- name: partition.return
-- unfenced: the counters of a partition, with a change of a slot that its own statement allows
-- writes: queue_partitions
update queue_partitions set running = running + :running, waiting = waiting + :waiting where queue = :queue and key = :key;

-- name: partition.show
-- read
select p.running, p.waiting, p.pause, p.tat, p.again_at as next_at
from queue_partitions p where p.queue = :queue and p.key = :key;

-- name: partition.sweep
-- unfenced: empty partitions whose turn and rate have passed mean the same as none, and old ones almost so
-- writes: queue_partitions
delete from queue_partitions where queue = :queue and key > :above and key <= :until and running = 0
  and waiting = 0 and pause is null and (vtime <= :vnow or entered < :steady - :older_ms) and tat <= :steady * 1000 and again_at is null;

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
update queues set tat = :tat, vnow = greatest(vnow, :vnow), started = started + :starts where id = :id;

-- name: queue.busy
-- read
select ifnull(sum(p.running), 0) as running from queue_partitions@{force_index=queue_partitions_busy, $sparse} p where p.busy = :queue;

-- name: queue.change
-- unfenced: a setting
-- writes: queues
update queues set spec = :spec, override = :override, counts = :counts, concurrency = :concurrency, key_concurrency = :key_concurrency,
  rate_us = :rate_us, rate_burst = :rate_burst, key_rate_us = :key_rate_us, key_rate_burst = :key_rate_burst, version = version + 1
where id = :id;

-- name: queue.claim
-- read
-- The queue, for the process that admits runs. What is read stays locked until our commit.
select q.id, q.name, q.concurrency, q.key_concurrency, q.rate_us, q.rate_burst, q.key_rate_us, q.key_rate_burst, q.tat, q.vnow, q.started,
  :steady as now
from queues@{force_index=queues_name} q where q.tenant = :tenant and q.name = :name and q.pause is null;

-- name: queue.count
-- read
select count(*) as n from queues@{force_index=queues_name} q where q.tenant = :tenant;

-- name: queue.create
-- unfenced: a setting, written from outside a run
-- writes: queues
insert into queues(id, tenant, name, spec, counts, concurrency, key_concurrency, rate_us, rate_burst, key_rate_us, key_rate_burst)
select :id, :tenant, :name, :spec, :counts, :concurrency, :key_concurrency, :rate_us, :rate_burst, :key_rate_us, :key_rate_burst
from unnest([1]) where not exists (select 1 from queues@{force_index=queues_name} o where o.tenant = :tenant and o.name = :name);

-- name: queue.find
-- read
select q.id, q.name, q.spec, q.override, q.counts, q.key_concurrency, q.version from queues@{force_index=queues_name} q where q.tenant = :tenant and q.name = :name;

-- name: queue.heads
-- read
-- The first runs of a key. A run without a token is held, and ends the list: no run passes another. A run that never had a
-- holder has one record.
select s.journal, s.class, s.expires, :steady - s.since as waited_ms, l.workflow, l.build, l.notes, l.begins, l.owner, l.last_end_reason,
  case when l.owner is null or l.doomed or l.expires_at <= :now then cast(l.token as string) end as token,
  cast(greatest(l.token, (select m.token_floor from meta m where m.one)) + 1 as string) as next_token,
  case when l.token = 0 then 1 else (select max(r.seq) from records r where r.journal = s.journal) end as head,
  case when l.token = 0 then (select r.body from records r where r.journal = s.journal and r.seq = 1 and byte_length(r.body) <= 4096) end as created,
  (select r.id from runs r where r.journal = s.journal) as run_id
from queue_slots@{force_index=queue_slots_waiting, $sparse} s join leases l on l.journal = s.journal
where s.queued = :queue and s.key = :key order by s.class, s.since, s.born limit :limit;

-- name: queue.in_use
-- read
-- Whether a run waits in the queue or holds a slot of it.
select exists (select 1 from queue_partitions p where p.queue = :queue and (p.running > 0 or p.waiting > 0)) as used;

-- name: queue.lock
-- read
-- The queue, for a process that changes it.
select q.id, q.name, q.spec, q.override, q.counts, q.key_concurrency, q.version from queues@{force_index=queues_name} q where q.tenant = :tenant and q.name = :name;

-- name: queue.pause
-- unfenced: an operator's setting
-- writes: queues
update queues set pause = :pause, version = version + 1 where id = :id;

-- name: queue.show
-- read
-- Queues of one tenant, by name. At most ten thousand keys of each are counted, and the waits of at most a hundred.
select q.id, q.name, q.version, q.spec, q.override, q.pause, q.tat, q.rate_us, q.rate_burst, q.started, :steady as now, 0 as ahead,
  $running_in as running,
  (select coalesce(sum(x.waiting), 0) from (select p.waiting from queue_partitions p where p.queue = q.id limit 10000) x) as waiting,
  (select count(*) from (select p.key from queue_partitions p where p.queue = q.id limit 10000) x) as keys,
  :steady - (select min(x.since) from (select (select s.since from queue_slots@{force_index=queue_slots_waiting, $sparse} s where s.queued = p.queue and s.key = p.key
      order by s.class, s.since limit 1) as since
    from (select p.queue, p.key from queue_partitions p where p.queue = q.id and p.waiting > 0 limit 100) p) x) as wait_ms
from queues@{force_index=queues_name} q where q.tenant = :tenant and q.name > :above and (:name is null or q.name = :name) order by q.name limit :limit;

-- name: slot.admit
-- unfenced: with the term that the same transaction grants
-- writes: queue_slots
update queue_slots set state = 'HELD', since = :steady where journal = :journal and state = 'QUEUED';

-- name: slot.ahead
-- read
-- How many runs of the same key come first, counted up to :limit.
select count(*) as n from (select s.journal from queue_slots@{force_index=queue_slots_waiting, $sparse} s where s.queued = :queue and s.key = :key
  and (s.class < :class or (s.class = :class and (s.since < :since or (s.since = :since and s.born < bit_reverse(:journal, true))))) limit :limit) x;

-- name: slot.assert_unnested
-- read
-- Returns a row unless the run, or one above it, keeps a slot that a child in this queue and key could wait for.
select 1 as ok from unnest([1]) where not exists (
  select 1 from runs r join queue_slots s on s.journal = r.journal or s.journal in unnest(r.path) join queues q on q.id = s.queue
  where r.journal = :journal and q.tenant = :tenant and q.name = :queue and s.keeps and s.state = 'HELD' and (q.concurrency is not null or s.key = :key));

-- name: slot.blockers
-- read
-- The runs that slot.reach has found, and whether each may continue. A deadline or an expiry ends a run; it does not let
-- it continue.
select r.journal, r.id, r.parent, q.name as queue, s.key, s.state, q.concurrency, q.key_concurrency,
  (r.phase <> 'LIVE' or l.owner is not null or l.next_reactor is not null
    or exists (select 1 from timers t where t.run = r.journal and t.status = 'SET' and t.purpose not in ('deadline', 'expire'))
    or exists (select 1 from gates g where g.run = r.journal and g.status = 'OPEN')
    or exists (select 1 from effects e where e.run = r.journal and e.role = 'effect'
      and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK'))) as moves
from unnest(:journals) d join runs r on r.journal = d join leases l on l.journal = d
  left join queue_slots s on s.journal = d left join queues q on q.id = s.queue
where r.tenant = :tenant;

-- name: slot.reach
-- read
-- What these runs wait for: the open children of a run that waits, and the holders of the slots that a queued run needs.
select c.journal from unnest(:journals) d join leases l on l.journal = d join runs@{force_index=runs_parent, $sparse} c on c.parent = d
where l.owner is null and l.next_reactor is null and c.ended_at is null
union distinct
select h.journal from unnest(:journals) d join queue_slots s on s.journal = d join queues q on q.id = s.queue
  join queue_slots@{force_index=queue_slots_held, $sparse} h on h.held = s.queue
where s.state = 'QUEUED' and (q.concurrency is not null or h.key = s.key);

-- name: slot.create
-- unfenced: the slot of a run that is created in the same transaction
-- writes: queue_slots
insert into queue_slots(journal, queue, key, class, since, state, keeps, expires)
select :journal, q.id, :key, :class, :steady, :state, q.counts = 'started', :expires from queues@{force_index=queues_name} q
where q.tenant = :tenant and q.name = :queue
union all select :journal, 0, '', :class, :steady, :state, false, false from unnest([1]) where :queue = ''
then return queue;

-- name: slot.delete
-- unfenced: under the lock of the run's lease, with the record or note that ends its place in the queue
-- writes: queue_slots
delete from queue_slots where journal = :journal;

-- name: slot.held
-- read
-- Runs that hold slots of a queue, key by key.
select x.journal, x.key, x.class, x.state, :steady - x.since as since_ms, r.id, r.workflow, r.phase,
  l.owner as lease_owner, l.next_reactor as lease_next_reactor, x.state as slot
from (select s.journal, s.key, s.class, s.since, s.state, s.born from queue_slots@{force_index=queue_slots_held, $sparse} s where s.held = :queue
    and s.key >= :from_key and s.key <= :to_key order by s.key, s.since, s.born limit :limit) x
  join runs r on r.journal = x.journal join leases l on l.journal = x.journal
order by x.key, x.since, x.born;

-- name: slot.waiting
-- read
-- Runs that wait in a queue, key by key in their order.
select x.journal, x.key, x.class, x.state, :steady - x.since as since_ms, r.id, r.workflow, r.phase,
  l.owner as lease_owner, l.next_reactor as lease_next_reactor, x.state as slot
from (select s.journal, s.key, s.class, s.since, s.state, s.born from queue_slots@{force_index=queue_slots_waiting, $sparse} s where s.queued = :queue
    and s.key >= :from_key and s.key <= :to_key order by s.key, s.class, s.since, s.born limit :limit) x
  join runs r on r.journal = x.journal join leases l on l.journal = x.journal
order by x.key, x.class, x.since, x.born;

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
from runs@{force_index=runs_id} r join queue_slots s on s.journal = r.journal left join queues q on q.id = s.queue
where r.tenant = :tenant and r.id = :id;

-- name: timer.move
-- unfenced: a debounced run starts later; only while its timer has not fired
-- writes: timers
-- The slot has the time of the first start.
update timers set due_at = least(:steady + :delay_ms, coalesce((select s.since from seen_slots s where s.journal = :run) + :max_delay_ms, :steady + :delay_ms))
where run = :run and pos = 0 and purpose = 'start' and status = 'SET';

-- name: timers.unexpire
-- unfenced: with the slot that the same transaction grants: a run that has started does not expire
-- writes: timers
update timers set status = 'CANCELLED' where run = :run and pos = 0 and purpose = 'expire' and status = 'SET';

-- Queues. Times are milliseconds since 1970 by the clock of this server, `tat` microseconds.
create table tape.queues(
  id bigint primary key,
  tenant text collate "C" not null, name text collate "C" not null,
  spec text not null, override text,    -- as defined, and what an operator has set; the next six columns are in effect
  concurrency bigint, key_concurrency bigint, rate_us bigint, rate_burst bigint, key_rate_us bigint, key_rate_burst bigint,
  counts text not null,                 -- running or started
  version bigint not null default 1,
  pause text,                           -- who paused it and why; null: it is not paused
  tat bigint not null default 0,        -- of the rate
  vnow bigint not null default 0,       -- the virtual time at which a new partition starts
  started bigint not null default 0
) with (fillfactor = 50);
create unique index queues_name on tape.queues(tenant, name);

-- The runs of one key. `class` is that of the first waiting run: 0 if it has run before, else its priority. `cap` is the
-- limit of the key as of the last admission; it matters only while the key has runs in slots. A key is ready if its first
-- run could start now. Generated columns, because an index on the counters would make every update write all indexes.
create table tape.queue_partitions(
  queue bigint not null, key text collate "C" not null, class bigint not null, vtime bigint not null,
  entered bigint not null default 0,    -- when it got its first waiting run: of two with the same turn, the earlier is next
  running bigint not null default 0, waiting bigint not null default 0, cap bigint,
  weight bigint not null default 1000,  -- in thousandths
  tat bigint not null default 0,
  again_at bigint,                      -- the rate of the key allows no start before
  pause text,
  busy boolean generated always as (running > 0) stored,
  ready boolean generated always as (waiting > 0 and pause is null and (cap is null or running < cap)
    and (class = 0 or again_at is null)) stored,
  primary key(queue, key)
) with (fillfactor = 70);
create index queue_partitions_ready on tape.queue_partitions(queue, class, vtime, entered, key) where ready;
create index queue_partitions_busy on tape.queue_partitions(queue) where busy;
create index queue_partitions_again on tape.queue_partitions(queue, again_at) where again_at is not null;

-- Where a run of a queue is: DELAYED, QUEUED, HELD or PARKED. Deleted when the run is decided or ended. A run without a
-- queue that starts later has a row under the number 0 until then. Written only under the lock of the run's lease.
create table tape.queue_slots(
  journal bigint primary key, queue bigint not null, key text collate "C" not null, class bigint not null, since bigint not null,
  state text not null,
  keeps boolean not null,               -- the queue counts started runs, so a run that waits keeps its slot
  expires boolean not null              -- a timer cancels it if it waits for too long
) with (fillfactor = 80);
create index queue_slots_waiting on tape.queue_slots(queue, key, class, since, journal) where state = 'QUEUED';
create index queue_slots_held on tape.queue_slots(queue, key, since, journal) where state = 'HELD';

-- The queue of a run; 0: none, but it starts later, or has a unique key. Null for every other lease. No index has it.
alter table tape.leases add column queue bigint;

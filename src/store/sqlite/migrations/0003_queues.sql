-- Queues. Times of queues are steady times in milliseconds (see meta.anchor in 0001), `tat` in microseconds.
create table queues(
  id integer primary key, tenant text not null, name text not null,
  spec text not null, override text,     -- as defined, and what an operator has set; the next six columns are in effect
  concurrency integer, key_concurrency integer, rate_us integer, rate_burst integer, key_rate_us integer, key_rate_burst integer,
  counts text not null,                  -- running or started
  version integer not null default 1,
  pause text,                            -- who paused it and why; null: it is not paused
  tat integer not null default 0,        -- of the rate
  vnow integer not null default 0,       -- the virtual time at which a new partition starts
  started integer not null default 0
) strict;
create unique index queues_name on queues(tenant, name);

-- The runs of one key. `class` is that of the first waiting run: 0 if it has run before, else its priority. `cap` is the
-- limit of the key as of the last admission; it matters only while the key has runs in slots. A key is ready if its first
-- run could start now. Virtual columns: they change seldom, and so do the indexes.
create table queue_partitions(
  queue integer not null, key text not null, class integer not null, vtime integer not null,
  entered integer not null default 0,    -- when it got its first waiting run: of two with the same turn, the earlier is next
  running integer not null default 0, waiting integer not null default 0, cap integer,
  weight integer not null default 1000, -- in thousandths
  tat integer not null default 0,
  again_at integer,                      -- the rate of the key allows no start before
  pause text,
  busy integer generated always as (running > 0) virtual,
  ready integer generated always as (waiting > 0 and pause is null and (cap is null or running < cap)
    and (class = 0 or again_at is null)) virtual,
  primary key(queue, key)
) strict, without rowid;
create index queue_partitions_ready on queue_partitions(queue, class, vtime, entered, key) where ready = 1;
create index queue_partitions_busy on queue_partitions(queue, running) where busy = 1;
create index queue_partitions_again on queue_partitions(queue, again_at) where again_at is not null;

-- Where a run of a queue is: DELAYED, QUEUED, HELD or PARKED. Deleted when the run is decided or ended. A run without a
-- queue that starts later has a row under the number 0 until then. Written only under the row of the run's lease.
create table queue_slots(
  journal integer primary key, queue integer not null, key text not null, class integer not null, since integer not null,
  state text not null,
  keeps integer not null,                -- 1: the queue counts started runs, so a run that waits keeps its slot
  expires integer not null               -- 1: a timer cancels it if it waits for too long
) strict;
create index queue_slots_waiting on queue_slots(queue, key, class, since, journal) where state = 'QUEUED';
create index queue_slots_held on queue_slots(queue, key, since, journal) where state = 'HELD';

-- The queue of a run; 0: none, but it starts later, or has a unique key. Null for every other lease.
alter table leases add column queue integer;

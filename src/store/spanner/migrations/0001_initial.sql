-- Journal numbers rise, and a key that rises sends every write to the same server. So all tables hold the number with its
-- bits reversed (numbers.ts); `born` is the number itself, for lists in the order of creation. Indexes in the order of
-- time begin with `shard`, one of eight, and are read shard by shard.
-- A column that depends on the row alone is generated, so that a null-filtered index has the rows of a partial one.
-- Times are milliseconds by the database's clock. Payloads are bytes: a column of text holds 2.5 million characters at
-- most, one of bytes ten megabytes.
create table if not exists meta(
  one bool not null,
  store_id string(max) not null,
  epoch int64 not null,
  token_floor int64 not null,
  next_journal int64 not null,
  cursor_key string(max) not null,
  secret string(max) not null
) primary key(one);

create table if not exists migrations(
  number int64 not null, name string(max) not null, checksum string(max) not null
) primary key(number);

create table if not exists runs(
  journal int64 not null,
  tenant string(max) not null, id string(max) not null, workflow string(max) not null, version string(max),
  phase string(max) not null, cause string(max), stuck_from string(max), input_hash string(max) not null,
  labels string(max), outcome bytes(max),
  parent int64, parent_pos int64, root int64 not null,
  path array<int64>,
  created_at int64 not null, ended_at int64,
  counted bool not null default (false),
  shard int64 not null as (journal >> 60) stored,
  born int64 not null as (bit_reverse(journal, true)) stored,
  under int64 as (if(parent is null, null, root)) stored,
  notable string(max) as (if(phase in ('LIVE', 'COMPLETED'), null, phase)) stored,
  counts string(max) as (if(counted and ended_at is null, tenant, null)) stored
) primary key(journal);
create unique index if not exists runs_id on runs(tenant, id);
create null_filtered index if not exists runs_parent on runs(parent);
create null_filtered index if not exists runs_tree on runs(under);
create index if not exists runs_created on runs(tenant, shard, created_at, born);
create null_filtered index if not exists runs_ended on runs(tenant, shard, ended_at, born);
create null_filtered index if not exists runs_phase on runs(tenant, notable, shard, born);
create null_filtered index if not exists runs_counted on runs(counts);

-- The fence reads tenant, kind, run, token, nonce, doomed, notes and queue. A renewal writes none of them, and no index
-- has a column that it writes.
create table if not exists leases(
  journal int64 not null,
  kind string(max) not null, tenant string(max) not null, run int64 not null,
  token int64 not null, nonce int64, owner string(max), label string(max), reactor string(max),
  ttl_ms int64 not null, expires_at int64 not null, acquired_at int64 not null, reason string(max),
  renewals int64 not null default (0), renewed_at int64 not null, longest_gap_ms int64 not null default (0),
  progress int64 not null default (0), progress_at int64 not null, progress_note string(max), max_stall_ms int64,
  doomed bool not null default (false), paused bool not null default (false), stalled bool not null default (false),
  notes int64 not null default (0),
  open bool not null default (true),
  next_reactor string(max), due_at int64 not null default (0), last_end_reason string(max),
  workflow string(max) not null default (''),
  queue int64, checkpoint string(max), build string(max),
  begins int64 not null default (1), begins_pos int64 not null default (0), begins_notes int64 not null default (0),
  shard int64 not null as (journal >> 60) stored,
  born int64 not null as (bit_reverse(journal, true)) stored,
  held string(max) as (if(owner is null or kind = 'name', null, tenant)) stored,
  runnable string(max) as (if(next_reactor = 'recovery' and owner is null and kind = 'run', tenant, null)) stored,
  pinned string(max) as (if(build is not null and next_reactor is not null and owner is null and kind = 'run', tenant, null)) stored,
  live_build string(max) as (if(open, build, null)) stored,
  item_of int64 as (if(kind = 'item', run, null)) stored
) primary key(journal);
create null_filtered index if not exists leases_due on leases(next_reactor, tenant, workflow, shard, due_at);
create null_filtered index if not exists leases_held on leases(held, workflow);
create null_filtered index if not exists leases_recovery on leases(runnable, shard, born);
create null_filtered index if not exists leases_pinned on leases(pinned, shard, born);
create null_filtered index if not exists leases_build on leases(tenant, live_build, shard, born);
create null_filtered index if not exists leases_items on leases(item_of);

create table if not exists names(
  tenant string(max) not null, name string(max) not null, journal int64 not null
) primary key(tenant, name);
create index if not exists names_journal on names(journal);

-- The feed is in the order of the commits.
create table if not exists records(
  journal int64 not null,
  seq int64 not null, token int64 not null, `at` int64 not null, kind string(max) not null, body bytes(max) not null,
  committed timestamp not null options (allow_commit_timestamp = true),
  shard int64 not null as (abs(journal) >> 60) stored
) primary key(journal, seq);
create index if not exists records_feed on records(shard, committed, journal, seq);

create table if not exists note_keys(
  journal int64 not null, key string(max) not null, n int64 not null
) primary key(journal, key);

create table if not exists effects(
  run int64 not null, pos int64 not null, sub int64 not null,
  tenant string(max) not null, root int64 not null, role string(max) not null, name string(max), connector string(max),
  semantics string(max) not null, dispatch string(max) not null, status string(max) not null,
  authority int64 not null, item int64, key string(max) not null, business_key string(max), args_hash string(max),
  args bytes(max) not null, policy string(max), attempt int64 not null default (0),
  attempt_token int64, attempt_nonce int64, send_until int64,
  reason string(max), outcome bytes(max), surplus bool not null, uncertain bool not null default (false),
  created_at int64 not null, changed_at int64 not null,
  shard int64 not null as (run >> 60) stored,
  born int64 not null as (bit_reverse(run, true)) stored,
  pending string(max) as (if(status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED'), status, null)) stored,
  doubted string(max) as (if(status in ('UNKNOWN', 'STUCK'), tenant, null)) stored,
  owed int64 as (if(role = 'compensation', root, null)) stored
) primary key(run, pos, sub);
create null_filtered index if not exists effects_open on effects(tenant, pending, shard, changed_at);
create null_filtered index if not exists effects_in_doubt on effects(doubted, run);
create null_filtered index if not exists effects_obligations on effects(owed);
create null_filtered index if not exists effects_item on effects(item);
create index if not exists effects_tenant on effects(tenant, shard, born, pos, sub);

create table if not exists business_keys(
  tenant string(max) not null, scope string(max) not null, business_key string(max) not null,
  run int64 not null, pos int64 not null
) primary key(tenant, scope, business_key);
create index if not exists business_keys_run on business_keys(run, pos);

create table if not exists gates(
  run int64 not null, pos int64 not null, tenant string(max) not null, name string(max) not null, status string(max) not null,
  binds string(max), payload bytes(max), value bytes(max), opened_at int64 not null,
  approvers string(max), approvals string(max) not null default (','), callback string(max), called int64,
  shard int64 not null as (run >> 60) stored,
  born int64 not null as (bit_reverse(run, true)) stored,
  waiting string(max) as (if(status = 'OPEN', tenant, null)) stored
) primary key(run, pos);
create null_filtered index if not exists gates_open on gates(waiting, shard, opened_at, born, pos);
create index if not exists gates_tenant on gates(tenant, shard, opened_at, born, pos);

create table if not exists timers(
  run int64 not null, pos int64 not null, purpose string(max) not null, tenant string(max) not null,
  status string(max) not null, due_at int64 not null,
  shard int64 not null as (run >> 60) stored,
  born int64 not null as (bit_reverse(run, true)) stored,
  waiting string(max) as (if(status = 'SET', tenant, null)) stored
) primary key(run, pos, purpose);
create null_filtered index if not exists timers_due on timers(waiting, shard, due_at);
create index if not exists timers_tenant on timers(tenant, shard, due_at, born, pos);

create table if not exists budgets(
  run int64 not null, unit string(max) not null, cap int64 not null,
  reserved int64 not null default (0), spent int64 not null default (0), tenant string(max) not null,
  shard int64 not null as (run >> 60) stored,
  born int64 not null as (bit_reverse(run, true)) stored
) primary key(run, unit);
create index if not exists budgets_tenant on budgets(tenant, shard, born);

create table if not exists vals(
  tenant string(max) not null, key string(max) not null, version int64 not null, value bytes(max), `at` int64 not null
) primary key(tenant, key);

create table if not exists val_log(
  tenant string(max) not null, key string(max) not null, version int64 not null, value bytes(max), `at` int64 not null
) primary key(tenant, key, version);

create table if not exists schedules(
  tenant string(max) not null, id string(max) not null, version int64 not null, spec bytes(max) not null, next_at int64,
  paused bool not null,
  waiting string(max) as (if(next_at is null or paused, null, tenant)) stored
) primary key(tenant, id);
create null_filtered index if not exists schedules_due on schedules(waiting, next_at);

create table if not exists published(
  run int64 not null, name string(max) not null, value bytes(max) not null, seq int64 not null, `at` int64 not null
) primary key(run, name);

create table if not exists replies(
  journal int64 not null, n int64 not null, body bytes(max) not null, `at` int64 not null
) primary key(journal, n);

create table if not exists run_labels(
  tenant string(max) not null, key string(max) not null, value string(max) not null, journal int64 not null,
  shard int64 not null as (journal >> 60) stored,
  born int64 not null as (bit_reverse(journal, true)) stored
) primary key(tenant, key, value, journal);
create index if not exists run_labels_newest on run_labels(tenant, key, value, shard, born);
create index if not exists run_labels_journal on run_labels(journal);

create table if not exists queues(
  id int64 not null, tenant string(max) not null, name string(max) not null,
  spec bytes(max) not null, override string(max),
  concurrency int64, key_concurrency int64, rate_us int64, rate_burst int64, key_rate_us int64, key_rate_burst int64,
  counts string(max) not null,
  version int64 not null default (1),
  pause string(max),
  tat int64 not null default (0), vnow int64 not null default (0), started int64 not null default (0)
) primary key(id);
create unique index if not exists queues_name on queues(tenant, name);

create table if not exists queue_partitions(
  queue int64 not null, key string(max) not null, class int64 not null, vtime int64 not null,
  entered int64 not null default (0),
  running int64 not null default (0), waiting int64 not null default (0), cap int64,
  weight int64 not null default (1000),
  tat int64 not null default (0),
  again_at int64,
  pause string(max),
  busy int64 as (if(running > 0, queue, null)) stored,
  ready int64 as (if(waiting > 0 and pause is null and (cap is null or running < cap) and (class = 0 or again_at is null), queue, null)) stored
) primary key(queue, key);
create null_filtered index if not exists queue_partitions_again on queue_partitions(queue, again_at);
create null_filtered index if not exists queue_partitions_busy on queue_partitions(busy) storing (running);
create null_filtered index if not exists queue_partitions_ready on queue_partitions(ready, class, vtime, entered, key);

create table if not exists queue_slots(
  journal int64 not null, queue int64 not null, key string(max) not null, class int64 not null, since int64 not null,
  state string(max) not null, keeps bool not null, expires bool not null,
  born int64 not null as (bit_reverse(journal, true)) stored,
  held int64 as (if(state = 'HELD', queue, null)) stored,
  queued int64 as (if(state = 'QUEUED', queue, null)) stored
) primary key(journal);
create null_filtered index if not exists queue_slots_held on queue_slots(held, key, since, born);
create null_filtered index if not exists queue_slots_waiting on queue_slots(queued, key, class, since, born);

create table if not exists builds(
  tenant string(max) not null, build string(max) not null, workflows string(max) not null, `current` bool not null default (false),
  first_at int64 not null, seen_at int64 not null
) primary key(tenant, build);

create table if not exists streams(
  run int64 not null, name string(max) not null, retain_ms int64
) primary key(run, name);
create null_filtered index if not exists streams_retained on streams(run, name, retain_ms);

create table if not exists chunks(
  run int64 not null, stream string(max) not null, chunk_offset int64 not null, part int64 not null,
  token int64 not null, `at` int64 not null, body bytes(max), total int64 not null
) primary key(run, stream, chunk_offset);

create table if not exists blobs(
  journal int64 not null, blob string(max) not null, n int64 not null, chunks int64 not null,
  bytes int64 not null, counted bool not null, body bytes(max) not null, begins int64 not null default (1)
) primary key(journal, blob, n);
create index if not exists blobs_generation on blobs(journal, begins) storing (bytes);

create table if not exists dead_letters(
  tenant string(max) not null, sink string(max) not null, event string(max) not null,
  journal int64 not null, seq int64 not null, inbox bool not null, kind string(max) not null, `at` int64 not null,
  attempts int64 not null, code string(max) not null, error string(max) not null, state string(max) not null,
  changed_at int64 not null
) primary key(tenant, sink, event);
create index if not exists dead_letters_state on dead_letters(tenant, sink, state, `at`, event);

create table if not exists tombstones(
  tenant string(max) not null, id string(max) not null, token int64 not null, `at` int64 not null,
  journal int64, created_at int64, ended_at int64, archive string(max)
) primary key(tenant, id);
create null_filtered index if not exists tombstones_journal on tombstones(journal);

create table if not exists retention(
  journal int64 not null, tenant string(max) not null, due_at int64 not null,
  shard int64 not null as (journal >> 60) stored
) primary key(journal);
create index if not exists retention_due on retention(tenant, shard, due_at);

create table if not exists witness(
  id int64 not null, void bool not null, committed timestamp not null options (allow_commit_timestamp = true),
  shard int64 not null as (id >> 60) stored
) primary key(id);
create index if not exists witness_committed on witness(shard, committed);

create table if not exists idempotency_keys(
  tenant string(max) not null, key string(max) not null, `hash` string(max) not null, response bytes(max) not null,
  `at` int64 not null,
  shard int64 not null as (abs(mod(farm_fingerprint(key), 8))) stored
) primary key(tenant, key);
create index if not exists idempotency_keys_at on idempotency_keys(shard, `at`);

create table if not exists tokens(
  id string(max) not null, tenant string(max) not null, name string(max) not null, role string(max) not null,
  `hash` string(max) not null, created_at int64 not null, expires_at int64, revoked_at int64, used_at int64
) primary key(id);

create table if not exists processes(
  tenant string(max) not null, owner string(max) not null, label string(max) not null, `at` int64 not null,
  body bytes(max) not null
) primary key(tenant, owner);

create table if not exists audit(
  tenant string(max) not null, n int64 not null, `at` int64 not null, journal int64 not null,
  subject string(max), body bytes(max) not null, `hash` string(max) not null
) primary key(tenant, n);

create table if not exists audit_heads(
  tenant string(max) not null, n int64 not null, `hash` string(max) not null
) primary key(tenant);

create table if not exists quotas(
  tenant string(max) not null, runs int64, bytes int64, schedules int64, streams int64,
  runs_used int64 not null default (0), runs_at int64 not null default (0), bytes_used int64 not null default (0),
  metered int64, metered_at int64 not null default (0)
) primary key(tenant);

-- What an UPDATE reads of other tables, it reads through a view: the emulator fails where such a table has generated
-- columns that the updated one lacks. The service treats a view like the table.
create or replace view seen_leases sql security invoker as select l.journal, l.begins_pos from leases l;
create or replace view seen_runs sql security invoker as select r.journal, r.root, r.path, r.parent, r.parent_pos from runs r;
create or replace view seen_effects sql security invoker as
  select e.run, e.pos, e.sub, e.root, e.owed, e.role, e.item, e.status, e.surplus, e.uncertain from effects e;
create or replace view seen_slots sql security invoker as
  select s.journal, s.queue, s.key, s.class, s.since, s.state, s.born from queue_slots s;

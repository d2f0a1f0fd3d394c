-- What a freshly migrated SQLite store looks like. Written by `npm run schema`, read by people and by a test only.

CREATE TABLE audit(
  id integer primary key, tenant text not null, n integer not null, at integer not null, journal integer not null,
  subject text, body text not null, hash text not null
) strict;

CREATE UNIQUE INDEX audit_n on audit(tenant, n);

CREATE TABLE audit_heads(tenant text primary key, n integer not null, hash text not null) strict, without rowid;

CREATE TABLE blobs(
  journal integer not null, blob text not null, n integer not null, chunks integer not null,
  bytes integer not null, counted integer not null, body text not null, begins integer not null default 1,
  primary key(journal, blob, n)
) strict;

CREATE INDEX blobs_generation on blobs(journal, begins, bytes);

CREATE TABLE budgets(
  run integer not null, unit text not null, cap integer not null,
  reserved integer not null default 0, spent integer not null default 0, tenant text not null default '',
  primary key(run, unit)
) strict, without rowid;

CREATE INDEX budgets_tenant on budgets(tenant, run);

CREATE TABLE builds(
  tenant text not null, build text not null, workflows text not null, current integer not null default 0,
  first_at integer not null, seen_at integer not null, primary key(tenant, build)
) strict, without rowid;

CREATE TABLE business_keys(
  tenant text not null, scope text not null, business_key text not null, run integer not null, pos integer not null,
  primary key(tenant, scope, business_key)
) strict, without rowid;

CREATE INDEX business_keys_run on business_keys(run, pos);

CREATE TABLE chunks(
  run integer not null, stream text not null, chunk_offset integer not null, part integer not null,
  token integer not null, at integer not null, body text, total integer not null,
  primary key(run, stream, chunk_offset)
) strict, without rowid;

CREATE TABLE dead_letters(
  tenant text not null, sink text not null, event text not null,
  journal integer not null, seq integer not null, inbox integer not null, kind text not null, at integer not null,
  attempts integer not null, code text not null, error text not null, state text not null default 'OPEN',
  changed_at integer not null, primary key(tenant, sink, event)
) strict, without rowid;

CREATE INDEX dead_letters_state on dead_letters(tenant, sink, state, at, event);

CREATE TABLE effects(
  run integer not null, pos integer not null, sub integer not null,
  tenant text not null, root integer not null, role text not null, name text, connector text,
  semantics text not null, dispatch text not null, status text not null,
  authority integer not null, item integer, key text not null, business_key text, args_hash text,
  args text not null, policy text, attempt integer not null default 0,
  attempt_token integer, attempt_nonce integer, send_until integer,
  reason text, outcome text, surplus integer not null, uncertain integer not null default 0,
  created_at integer not null, changed_at integer not null,
  primary key(run, pos, sub)
) strict, without rowid;

CREATE INDEX effects_in_doubt on effects(tenant, run) where status in ('UNKNOWN', 'STUCK');

CREATE INDEX effects_item on effects(item) where item is not null;

CREATE INDEX effects_obligations on effects(root) where role = 'compensation';

CREATE INDEX effects_open on effects(tenant, status, changed_at)
  where status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED');

CREATE INDEX effects_tenant on effects(tenant);

CREATE TABLE gates(
  run integer not null, pos integer not null, tenant text not null, name text not null, status text not null,
  binds text, payload text, value text, opened_at integer not null,
  approvers text,
  approvals text not null default ',', callback text, called integer,
  primary key(run, pos)
) strict, without rowid;

CREATE INDEX gates_open on gates(tenant, opened_at) where status = 'OPEN';

CREATE INDEX gates_tenant on gates(tenant, opened_at);

CREATE TABLE idempotency_keys(
  tenant text not null, key text not null, hash text not null, response text not null, at integer not null,
  primary key(tenant, key)
) strict, without rowid;

CREATE INDEX idempotency_keys_at on idempotency_keys(at);

CREATE TABLE leases(
  journal integer primary key,
  kind text not null, tenant text not null, run integer not null,
  token integer not null, nonce integer, owner text, label text, reactor text,
  ttl_ms integer not null, expires_at integer not null, acquired_at integer not null, reason text,
  renewals integer not null default 0, renewed_at integer not null, longest_gap_ms integer not null default 0,
  progress integer not null default 0, progress_at integer not null, progress_note text, max_stall_ms integer,
  doomed integer not null default 0, paused integer not null default 0, stalled integer not null default 0,
  notes integer not null default 0,
  open integer not null default 1,
  next_reactor text, due_at integer not null default 0, last_end_reason text,
  workflow text not null default ''
, queue integer, checkpoint text, build text, begins integer not null default 1, begins_pos integer not null default 0, begins_notes integer not null default 0) strict;

CREATE INDEX leases_build on leases(tenant, build) where build is not null and open = 1;

CREATE INDEX leases_due on leases(next_reactor, tenant, workflow, due_at) where next_reactor is not null;

CREATE INDEX leases_held on leases(tenant, workflow) where owner is not null and kind <> 'name';

CREATE INDEX leases_items on leases(run) where kind = 'item';

CREATE INDEX leases_pinned on leases(tenant) where build is not null and next_reactor is not null;

CREATE INDEX leases_recovery on leases(tenant) where next_reactor = 'recovery';

CREATE TABLE meta(
  one integer primary key check (one = 1),
  store_id text not null,
  epoch integer not null,
  token_floor integer not null,
  next_journal integer not null,
  boot text not null,
  anchor integer,
  file text,
  cursor_key text
, secret text) strict;

CREATE TABLE migrations(number integer primary key, name text not null, checksum text not null) strict;

CREATE TABLE names(
  tenant text not null, name text not null, journal integer not null, primary key(tenant, name)
) strict, without rowid;

CREATE INDEX names_journal on names(journal);

CREATE TABLE note_keys(
  journal integer not null, key text not null, n integer not null, primary key(journal, key)
) strict, without rowid;

CREATE TABLE processes(
  tenant text not null, owner text not null, label text not null, at integer not null, body text not null,
  primary key(tenant, owner)
) strict, without rowid;

CREATE INDEX processes_at on processes(at);

CREATE TABLE published(
  run integer not null, name text not null, value text not null,
  seq integer not null,
  at integer not null, primary key(run, name)
) strict, without rowid;

CREATE TABLE queue_partitions(
  queue integer not null, key text not null, class integer not null, vtime integer not null,
  entered integer not null default 0,
  running integer not null default 0, waiting integer not null default 0, cap integer,
  weight integer not null default 1000,
  tat integer not null default 0,
  again_at integer,
  pause text,
  busy integer generated always as (running > 0) virtual,
  ready integer generated always as (waiting > 0 and pause is null and (cap is null or running < cap)
    and (class = 0 or again_at is null)) virtual,
  primary key(queue, key)
) strict, without rowid;

CREATE INDEX queue_partitions_again on queue_partitions(queue, again_at) where again_at is not null;

CREATE INDEX queue_partitions_busy on queue_partitions(queue, running) where busy = 1;

CREATE INDEX queue_partitions_ready on queue_partitions(queue, class, vtime, entered, key) where ready = 1;

CREATE TABLE queue_slots(
  journal integer primary key, queue integer not null, key text not null, class integer not null, since integer not null,
  state text not null,
  keeps integer not null,
  expires integer not null
) strict;

CREATE INDEX queue_slots_held on queue_slots(queue, key, since, journal) where state = 'HELD';

CREATE INDEX queue_slots_waiting on queue_slots(queue, key, class, since, journal) where state = 'QUEUED';

CREATE TABLE queues(
  id integer primary key, tenant text not null, name text not null,
  spec text not null, override text,
  concurrency integer, key_concurrency integer, rate_us integer, rate_burst integer, key_rate_us integer, key_rate_burst integer,
  counts text not null,
  version integer not null default 1,
  pause text,
  tat integer not null default 0,
  vnow integer not null default 0,
  started integer not null default 0
) strict;

CREATE UNIQUE INDEX queues_name on queues(tenant, name);

CREATE TABLE quotas(
  tenant text not null primary key, runs integer, bytes integer, schedules integer, streams integer,
  runs_used integer not null default 0, runs_at integer not null default 0, bytes_used integer not null default 0,
  metered integer, metered_at integer not null default 0
) strict, without rowid;

CREATE TABLE records(
  id integer primary key,
  journal integer not null,
  seq integer not null, token integer not null, at integer not null, kind text not null, body text not null
) strict;

CREATE UNIQUE INDEX records_head on records(journal, seq);

CREATE TABLE replies(
  journal integer not null, n integer not null,
  body text not null, at integer not null, primary key(journal, n)
) strict, without rowid;

CREATE TABLE retention(journal integer primary key, tenant text not null, due_at integer not null) strict;

CREATE INDEX retention_due on retention(tenant, due_at);

CREATE TABLE run_labels(
  tenant text not null, key text not null, value text not null, journal integer not null,
  primary key(tenant, key, value, journal)
) strict, without rowid;

CREATE INDEX run_labels_journal on run_labels(journal);

CREATE TABLE runs(
  journal integer primary key,
  tenant text not null, id text not null, workflow text not null, version text,
  phase text not null, cause text, stuck_from text, input_hash text not null, labels text, outcome text,
  parent integer, parent_pos integer, root integer not null,
  created_at integer not null, ended_at integer,
  counted integer not null default 0
, labelled integer) strict;

CREATE INDEX runs_counted on runs(tenant) where counted = 1 and ended_at is null;

CREATE INDEX runs_created on runs(tenant, created_at);

CREATE INDEX runs_ended on runs(tenant, ended_at) where ended_at is not null;

CREATE UNIQUE INDEX runs_id on runs(tenant, id);

CREATE INDEX runs_parent on runs(parent) where parent is not null;

CREATE INDEX runs_phase on runs(tenant, phase) where phase not in ('LIVE', 'COMPLETED');

CREATE INDEX runs_tree on runs(root) where parent is not null;

CREATE INDEX runs_unlisted on runs(tenant, journal) where labels is not null and labelled is null;

CREATE TABLE schedules(
  tenant text not null, id text not null, version integer not null, spec text not null, next_at integer,
  paused integer not null, primary key(tenant, id)
) strict, without rowid;

CREATE INDEX schedules_due on schedules(tenant, next_at) where next_at is not null and paused = 0;

CREATE TABLE streams(
  run integer not null, name text not null, retain_ms integer, primary key(run, name)
) strict, without rowid;

CREATE INDEX streams_retained on streams(run, name) where retain_ms is not null;

CREATE TABLE timers(
  run integer not null, pos integer not null, purpose text not null, tenant text not null, status text not null,
  due_at integer not null,
  steady integer not null default 0,
  primary key(run, pos, purpose)
) strict, without rowid;

CREATE INDEX timers_due on timers(tenant, steady, due_at) where status = 'SET';

CREATE INDEX timers_tenant on timers(tenant, steady, due_at);

CREATE TABLE tokens(
  id text primary key, tenant text not null, name text not null, role text not null, hash text not null,
  created_at integer not null, expires_at integer, revoked_at integer, used_at integer
) strict, without rowid;

CREATE TABLE tombstones(
  tenant text not null, id text not null, token integer not null, at integer not null,
  journal integer, created_at integer, ended_at integer, archive text, primary key(tenant, id)
) strict, without rowid;

CREATE INDEX tombstones_journal on tombstones(journal) where journal is not null;

CREATE TABLE val_log(
  tenant text not null, key text not null, version integer not null, value text, at integer not null,
  primary key(tenant, key, version)
) strict, without rowid;

CREATE TABLE vals(
  tenant text not null, key text not null, version integer not null, value text, at integer not null,
  primary key(tenant, key)
) strict, without rowid;

CREATE TABLE witness(id integer primary key, at integer not null) strict;

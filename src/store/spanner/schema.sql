-- What a freshly migrated Spanner store looks like. Written by `node test/spanner/schema.ts`, read by people and by a test only.

CREATE TABLE meta (
  one BOOL NOT NULL,
  store_id STRING(MAX) NOT NULL,
  epoch INT64 NOT NULL,
  token_floor INT64 NOT NULL,
  next_journal INT64 NOT NULL,
  cursor_key STRING(MAX) NOT NULL,
  secret STRING(MAX) NOT NULL,
) PRIMARY KEY(one);

CREATE TABLE migrations (
  number INT64 NOT NULL,
  name STRING(MAX) NOT NULL,
  checksum STRING(MAX) NOT NULL,
) PRIMARY KEY(number);

CREATE TABLE runs (
  journal INT64 NOT NULL,
  tenant STRING(MAX) NOT NULL,
  id STRING(MAX) NOT NULL,
  workflow STRING(MAX) NOT NULL,
  version STRING(MAX),
  phase STRING(MAX) NOT NULL,
  cause STRING(MAX),
  stuck_from STRING(MAX),
  input_hash STRING(MAX) NOT NULL,
  labels STRING(MAX),
  outcome BYTES(MAX),
  parent INT64,
  parent_pos INT64,
  root INT64 NOT NULL,
  path ARRAY<INT64>,
  created_at INT64 NOT NULL,
  ended_at INT64,
  counted BOOL NOT NULL DEFAULT (false),
  shard INT64 NOT NULL AS (journal >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(journal, true)) STORED,
  under INT64 AS (if(parent is null, null, root)) STORED,
  notable STRING(MAX) AS (if(phase in ('LIVE', 'COMPLETED'), null, phase)) STORED,
  counts STRING(MAX) AS (if(counted and ended_at is null, tenant, null)) STORED,
) PRIMARY KEY(journal);

CREATE NULL_FILTERED INDEX runs_counted ON runs(counts);

CREATE INDEX runs_created ON runs(tenant, shard, created_at, born);

CREATE NULL_FILTERED INDEX runs_ended ON runs(tenant, shard, ended_at, born);

CREATE UNIQUE INDEX runs_id ON runs(tenant, id);

CREATE NULL_FILTERED INDEX runs_parent ON runs(parent);

CREATE NULL_FILTERED INDEX runs_phase ON runs(tenant, notable, shard, born);

CREATE NULL_FILTERED INDEX runs_tree ON runs(under);

CREATE TABLE leases (
  journal INT64 NOT NULL,
  kind STRING(MAX) NOT NULL,
  tenant STRING(MAX) NOT NULL,
  run INT64 NOT NULL,
  token INT64 NOT NULL,
  nonce INT64,
  owner STRING(MAX),
  label STRING(MAX),
  reactor STRING(MAX),
  ttl_ms INT64 NOT NULL,
  expires_at INT64 NOT NULL,
  acquired_at INT64 NOT NULL,
  reason STRING(MAX),
  renewals INT64 NOT NULL DEFAULT (0),
  renewed_at INT64 NOT NULL,
  longest_gap_ms INT64 NOT NULL DEFAULT (0),
  progress INT64 NOT NULL DEFAULT (0),
  progress_at INT64 NOT NULL,
  progress_note STRING(MAX),
  max_stall_ms INT64,
  doomed BOOL NOT NULL DEFAULT (false),
  paused BOOL NOT NULL DEFAULT (false),
  stalled BOOL NOT NULL DEFAULT (false),
  notes INT64 NOT NULL DEFAULT (0),
  open BOOL NOT NULL DEFAULT (true),
  next_reactor STRING(MAX),
  due_at INT64 NOT NULL DEFAULT (0),
  last_end_reason STRING(MAX),
  workflow STRING(MAX) NOT NULL DEFAULT (''),
  queue INT64,
  checkpoint STRING(MAX),
  build STRING(MAX),
  begins INT64 NOT NULL DEFAULT (1),
  begins_pos INT64 NOT NULL DEFAULT (0),
  begins_notes INT64 NOT NULL DEFAULT (0),
  shard INT64 NOT NULL AS (journal >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(journal, true)) STORED,
  held STRING(MAX) AS (if(owner is null or kind = 'name', null, tenant)) STORED,
  runnable STRING(MAX) AS (if(next_reactor = 'recovery' and owner is null and kind = 'run', tenant, null)) STORED,
  pinned STRING(MAX) AS (if(build is not null and next_reactor is not null and owner is null and kind = 'run', tenant, null)) STORED,
  live_build STRING(MAX) AS (if(open, build, null)) STORED,
  item_of INT64 AS (if(kind = 'item', run, null)) STORED,
) PRIMARY KEY(journal);

CREATE NULL_FILTERED INDEX leases_build ON leases(tenant, live_build, shard, born);

CREATE NULL_FILTERED INDEX leases_due ON leases(next_reactor, tenant, workflow, shard, due_at);

CREATE NULL_FILTERED INDEX leases_held ON leases(held, workflow);

CREATE NULL_FILTERED INDEX leases_items ON leases(item_of);

CREATE NULL_FILTERED INDEX leases_pinned ON leases(pinned, shard, born);

CREATE NULL_FILTERED INDEX leases_recovery ON leases(runnable, shard, born);

CREATE TABLE names (
  tenant STRING(MAX) NOT NULL,
  name STRING(MAX) NOT NULL,
  journal INT64 NOT NULL,
) PRIMARY KEY(tenant, name);

CREATE INDEX names_journal ON names(journal);

CREATE TABLE records (
  journal INT64 NOT NULL,
  seq INT64 NOT NULL,
  token INT64 NOT NULL,
  `at` INT64 NOT NULL,
  kind STRING(MAX) NOT NULL,
  body BYTES(MAX) NOT NULL,
  committed TIMESTAMP NOT NULL OPTIONS (
    allow_commit_timestamp = true
  ),
  shard INT64 NOT NULL AS (abs(journal) >> 60) STORED,
) PRIMARY KEY(journal, seq);

CREATE INDEX records_feed ON records(shard, committed, journal, seq);

CREATE TABLE note_keys (
  journal INT64 NOT NULL,
  key STRING(MAX) NOT NULL,
  n INT64 NOT NULL,
) PRIMARY KEY(journal, key);

CREATE TABLE effects (
  run INT64 NOT NULL,
  pos INT64 NOT NULL,
  sub INT64 NOT NULL,
  tenant STRING(MAX) NOT NULL,
  root INT64 NOT NULL,
  role STRING(MAX) NOT NULL,
  name STRING(MAX),
  connector STRING(MAX),
  semantics STRING(MAX) NOT NULL,
  dispatch STRING(MAX) NOT NULL,
  status STRING(MAX) NOT NULL,
  authority INT64 NOT NULL,
  item INT64,
  key STRING(MAX) NOT NULL,
  business_key STRING(MAX),
  args_hash STRING(MAX),
  args BYTES(MAX) NOT NULL,
  policy STRING(MAX),
  attempt INT64 NOT NULL DEFAULT (0),
  attempt_token INT64,
  attempt_nonce INT64,
  send_until INT64,
  reason STRING(MAX),
  outcome BYTES(MAX),
  surplus BOOL NOT NULL,
  uncertain BOOL NOT NULL DEFAULT (false),
  created_at INT64 NOT NULL,
  changed_at INT64 NOT NULL,
  shard INT64 NOT NULL AS (run >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(run, true)) STORED,
  pending STRING(MAX) AS (if(status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED'), status, null)) STORED,
  doubted STRING(MAX) AS (if(status in ('UNKNOWN', 'STUCK'), tenant, null)) STORED,
  owed INT64 AS (if(role = 'compensation', root, null)) STORED,
) PRIMARY KEY(run, pos, sub);

CREATE NULL_FILTERED INDEX effects_in_doubt ON effects(doubted, run);

CREATE NULL_FILTERED INDEX effects_item ON effects(item);

CREATE NULL_FILTERED INDEX effects_obligations ON effects(owed);

CREATE NULL_FILTERED INDEX effects_open ON effects(tenant, pending, shard, changed_at);

CREATE INDEX effects_tenant ON effects(tenant, shard, born, pos, sub);

CREATE TABLE business_keys (
  tenant STRING(MAX) NOT NULL,
  scope STRING(MAX) NOT NULL,
  business_key STRING(MAX) NOT NULL,
  run INT64 NOT NULL,
  pos INT64 NOT NULL,
) PRIMARY KEY(tenant, scope, business_key);

CREATE INDEX business_keys_run ON business_keys(run, pos);

CREATE TABLE gates (
  run INT64 NOT NULL,
  pos INT64 NOT NULL,
  tenant STRING(MAX) NOT NULL,
  name STRING(MAX) NOT NULL,
  status STRING(MAX) NOT NULL,
  binds STRING(MAX),
  payload BYTES(MAX),
  value BYTES(MAX),
  opened_at INT64 NOT NULL,
  approvers STRING(MAX),
  approvals STRING(MAX) NOT NULL DEFAULT (','),
  callback STRING(MAX),
  called INT64,
  shard INT64 NOT NULL AS (run >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(run, true)) STORED,
  waiting STRING(MAX) AS (if(status = 'OPEN', tenant, null)) STORED,
) PRIMARY KEY(run, pos);

CREATE NULL_FILTERED INDEX gates_open ON gates(waiting, shard, opened_at, born, pos);

CREATE INDEX gates_tenant ON gates(tenant, shard, opened_at, born, pos);

CREATE TABLE timers (
  run INT64 NOT NULL,
  pos INT64 NOT NULL,
  purpose STRING(MAX) NOT NULL,
  tenant STRING(MAX) NOT NULL,
  status STRING(MAX) NOT NULL,
  due_at INT64 NOT NULL,
  shard INT64 NOT NULL AS (run >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(run, true)) STORED,
  waiting STRING(MAX) AS (if(status = 'SET', tenant, null)) STORED,
) PRIMARY KEY(run, pos, purpose);

CREATE NULL_FILTERED INDEX timers_due ON timers(waiting, shard, due_at);

CREATE INDEX timers_tenant ON timers(tenant, shard, due_at, born, pos);

CREATE TABLE budgets (
  run INT64 NOT NULL,
  unit STRING(MAX) NOT NULL,
  cap INT64 NOT NULL,
  reserved INT64 NOT NULL DEFAULT (0),
  spent INT64 NOT NULL DEFAULT (0),
  tenant STRING(MAX) NOT NULL,
  shard INT64 NOT NULL AS (run >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(run, true)) STORED,
) PRIMARY KEY(run, unit);

CREATE INDEX budgets_tenant ON budgets(tenant, shard, born);

CREATE TABLE vals (
  tenant STRING(MAX) NOT NULL,
  key STRING(MAX) NOT NULL,
  version INT64 NOT NULL,
  value BYTES(MAX),
  `at` INT64 NOT NULL,
) PRIMARY KEY(tenant, key);

CREATE TABLE val_log (
  tenant STRING(MAX) NOT NULL,
  key STRING(MAX) NOT NULL,
  version INT64 NOT NULL,
  value BYTES(MAX),
  `at` INT64 NOT NULL,
) PRIMARY KEY(tenant, key, version);

CREATE TABLE schedules (
  tenant STRING(MAX) NOT NULL,
  id STRING(MAX) NOT NULL,
  version INT64 NOT NULL,
  spec BYTES(MAX) NOT NULL,
  next_at INT64,
  paused BOOL NOT NULL,
  waiting STRING(MAX) AS (if(next_at is null or paused, null, tenant)) STORED,
) PRIMARY KEY(tenant, id);

CREATE NULL_FILTERED INDEX schedules_due ON schedules(waiting, next_at);

CREATE TABLE published (
  run INT64 NOT NULL,
  name STRING(MAX) NOT NULL,
  value BYTES(MAX) NOT NULL,
  seq INT64 NOT NULL,
  `at` INT64 NOT NULL,
) PRIMARY KEY(run, name);

CREATE TABLE replies (
  journal INT64 NOT NULL,
  n INT64 NOT NULL,
  body BYTES(MAX) NOT NULL,
  `at` INT64 NOT NULL,
) PRIMARY KEY(journal, n);

CREATE TABLE run_labels (
  tenant STRING(MAX) NOT NULL,
  key STRING(MAX) NOT NULL,
  value STRING(MAX) NOT NULL,
  journal INT64 NOT NULL,
  shard INT64 NOT NULL AS (journal >> 60) STORED,
  born INT64 NOT NULL AS (bit_reverse(journal, true)) STORED,
) PRIMARY KEY(tenant, key, value, journal);

CREATE INDEX run_labels_journal ON run_labels(journal);

CREATE INDEX run_labels_newest ON run_labels(tenant, key, value, shard, born);

CREATE TABLE queues (
  id INT64 NOT NULL,
  tenant STRING(MAX) NOT NULL,
  name STRING(MAX) NOT NULL,
  spec BYTES(MAX) NOT NULL,
  override STRING(MAX),
  concurrency INT64,
  key_concurrency INT64,
  rate_us INT64,
  rate_burst INT64,
  key_rate_us INT64,
  key_rate_burst INT64,
  counts STRING(MAX) NOT NULL,
  version INT64 NOT NULL DEFAULT (1),
  pause STRING(MAX),
  tat INT64 NOT NULL DEFAULT (0),
  vnow INT64 NOT NULL DEFAULT (0),
  started INT64 NOT NULL DEFAULT (0),
) PRIMARY KEY(id);

CREATE UNIQUE INDEX queues_name ON queues(tenant, name);

CREATE TABLE queue_partitions (
  queue INT64 NOT NULL,
  key STRING(MAX) NOT NULL,
  class INT64 NOT NULL,
  vtime INT64 NOT NULL,
  entered INT64 NOT NULL DEFAULT (0),
  running INT64 NOT NULL DEFAULT (0),
  waiting INT64 NOT NULL DEFAULT (0),
  cap INT64,
  weight INT64 NOT NULL DEFAULT (1000),
  tat INT64 NOT NULL DEFAULT (0),
  again_at INT64,
  pause STRING(MAX),
  busy INT64 AS (if(running > 0, queue, null)) STORED,
  ready INT64 AS (if(waiting > 0 and pause is null and (cap is null or running < cap) and (class = 0 or again_at is null), queue, null)) STORED,
) PRIMARY KEY(queue, key);

CREATE NULL_FILTERED INDEX queue_partitions_again ON queue_partitions(queue, again_at);

CREATE NULL_FILTERED INDEX queue_partitions_busy ON queue_partitions(busy) STORING (running);

CREATE NULL_FILTERED INDEX queue_partitions_ready ON queue_partitions(ready, class, vtime, entered, key);

CREATE TABLE queue_slots (
  journal INT64 NOT NULL,
  queue INT64 NOT NULL,
  key STRING(MAX) NOT NULL,
  class INT64 NOT NULL,
  since INT64 NOT NULL,
  state STRING(MAX) NOT NULL,
  keeps BOOL NOT NULL,
  expires BOOL NOT NULL,
  born INT64 NOT NULL AS (bit_reverse(journal, true)) STORED,
  held INT64 AS (if(state = 'HELD', queue, null)) STORED,
  queued INT64 AS (if(state = 'QUEUED', queue, null)) STORED,
) PRIMARY KEY(journal);

CREATE NULL_FILTERED INDEX queue_slots_held ON queue_slots(held, key, since, born);

CREATE NULL_FILTERED INDEX queue_slots_waiting ON queue_slots(queued, key, class, since, born);

CREATE TABLE builds (
  tenant STRING(MAX) NOT NULL,
  build STRING(MAX) NOT NULL,
  workflows STRING(MAX) NOT NULL,
  `current` BOOL NOT NULL DEFAULT (false),
  first_at INT64 NOT NULL,
  seen_at INT64 NOT NULL,
) PRIMARY KEY(tenant, build);

CREATE TABLE streams (
  run INT64 NOT NULL,
  name STRING(MAX) NOT NULL,
  retain_ms INT64,
) PRIMARY KEY(run, name);

CREATE NULL_FILTERED INDEX streams_retained ON streams(run, name, retain_ms);

CREATE TABLE chunks (
  run INT64 NOT NULL,
  stream STRING(MAX) NOT NULL,
  chunk_offset INT64 NOT NULL,
  part INT64 NOT NULL,
  token INT64 NOT NULL,
  `at` INT64 NOT NULL,
  body BYTES(MAX),
  total INT64 NOT NULL,
) PRIMARY KEY(run, stream, chunk_offset);

CREATE TABLE blobs (
  journal INT64 NOT NULL,
  blob STRING(MAX) NOT NULL,
  n INT64 NOT NULL,
  chunks INT64 NOT NULL,
  bytes INT64 NOT NULL,
  counted BOOL NOT NULL,
  body BYTES(MAX) NOT NULL,
  begins INT64 NOT NULL DEFAULT (1),
) PRIMARY KEY(journal, blob, n);

CREATE INDEX blobs_generation ON blobs(journal, begins) STORING (bytes);

CREATE TABLE dead_letters (
  tenant STRING(MAX) NOT NULL,
  sink STRING(MAX) NOT NULL,
  event STRING(MAX) NOT NULL,
  journal INT64 NOT NULL,
  seq INT64 NOT NULL,
  inbox BOOL NOT NULL,
  kind STRING(MAX) NOT NULL,
  `at` INT64 NOT NULL,
  attempts INT64 NOT NULL,
  code STRING(MAX) NOT NULL,
  error STRING(MAX) NOT NULL,
  state STRING(MAX) NOT NULL,
  changed_at INT64 NOT NULL,
) PRIMARY KEY(tenant, sink, event);

CREATE INDEX dead_letters_state ON dead_letters(tenant, sink, state, `at`, event);

CREATE TABLE tombstones (
  tenant STRING(MAX) NOT NULL,
  id STRING(MAX) NOT NULL,
  token INT64 NOT NULL,
  `at` INT64 NOT NULL,
  journal INT64,
  created_at INT64,
  ended_at INT64,
  archive STRING(MAX),
) PRIMARY KEY(tenant, id);

CREATE NULL_FILTERED INDEX tombstones_journal ON tombstones(journal);

CREATE TABLE retention (
  journal INT64 NOT NULL,
  tenant STRING(MAX) NOT NULL,
  due_at INT64 NOT NULL,
  shard INT64 NOT NULL AS (journal >> 60) STORED,
) PRIMARY KEY(journal);

CREATE INDEX retention_due ON retention(tenant, shard, due_at);

CREATE TABLE witness (
  id INT64 NOT NULL,
  void BOOL NOT NULL,
  committed TIMESTAMP NOT NULL OPTIONS (
    allow_commit_timestamp = true
  ),
  shard INT64 NOT NULL AS (id >> 60) STORED,
) PRIMARY KEY(id);

CREATE INDEX witness_committed ON witness(shard, committed);

CREATE TABLE idempotency_keys (
  tenant STRING(MAX) NOT NULL,
  key STRING(MAX) NOT NULL,
  `hash` STRING(MAX) NOT NULL,
  response BYTES(MAX) NOT NULL,
  `at` INT64 NOT NULL,
  shard INT64 NOT NULL AS (abs(mod(farm_fingerprint(key), 8))) STORED,
) PRIMARY KEY(tenant, key);

CREATE INDEX idempotency_keys_at ON idempotency_keys(shard, `at`);

CREATE TABLE tokens (
  id STRING(MAX) NOT NULL,
  tenant STRING(MAX) NOT NULL,
  name STRING(MAX) NOT NULL,
  role STRING(MAX) NOT NULL,
  `hash` STRING(MAX) NOT NULL,
  created_at INT64 NOT NULL,
  expires_at INT64,
  revoked_at INT64,
  used_at INT64,
) PRIMARY KEY(id);

CREATE TABLE processes (
  tenant STRING(MAX) NOT NULL,
  owner STRING(MAX) NOT NULL,
  label STRING(MAX) NOT NULL,
  `at` INT64 NOT NULL,
  body BYTES(MAX) NOT NULL,
) PRIMARY KEY(tenant, owner);

CREATE TABLE audit (
  tenant STRING(MAX) NOT NULL,
  n INT64 NOT NULL,
  `at` INT64 NOT NULL,
  journal INT64 NOT NULL,
  subject STRING(MAX),
  body BYTES(MAX) NOT NULL,
  `hash` STRING(MAX) NOT NULL,
) PRIMARY KEY(tenant, n);

CREATE TABLE audit_heads (
  tenant STRING(MAX) NOT NULL,
  n INT64 NOT NULL,
  `hash` STRING(MAX) NOT NULL,
) PRIMARY KEY(tenant);

CREATE TABLE quotas (
  tenant STRING(MAX) NOT NULL,
  runs INT64,
  bytes INT64,
  schedules INT64,
  streams INT64,
  runs_used INT64 NOT NULL DEFAULT (0),
  runs_at INT64 NOT NULL DEFAULT (0),
  bytes_used INT64 NOT NULL DEFAULT (0),
  metered INT64,
  metered_at INT64 NOT NULL DEFAULT (0),
) PRIMARY KEY(tenant);

CREATE VIEW seen_leases SQL SECURITY INVOKER AS select l.journal, l.begins_pos from leases l;

CREATE VIEW seen_runs SQL SECURITY INVOKER AS select r.journal, r.root, r.path, r.parent, r.parent_pos from runs r;

CREATE VIEW seen_effects SQL SECURITY INVOKER AS select e.run, e.pos, e.sub, e.root, e.owed, e.role, e.item, e.status, e.surplus, e.uncertain from effects e;

CREATE VIEW seen_slots SQL SECURITY INVOKER AS select s.journal, s.queue, s.key, s.class, s.since, s.state, s.born from queue_slots s;

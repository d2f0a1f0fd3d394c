-- What a freshly migrated PostgreSQL store looks like. Written by `npm run schema`, read by people and by a test only.

table tape.audit(
  id bigint not null,
  tenant text not null,
  n bigint not null,
  at bigint not null,
  journal bigint not null,
  subject text,
  body text not null,
  hash text not null,
  audit_pkey PRIMARY KEY (id)
);

CREATE UNIQUE INDEX audit_n ON tape.audit USING btree (tenant, n);

table tape.audit_heads(
  tenant text not null,
  n bigint not null,
  hash text not null,
  audit_heads_pkey PRIMARY KEY (tenant)
);

table tape.blobs(
  journal bigint not null,
  blob text not null,
  n integer not null,
  chunks integer not null,
  bytes bigint not null,
  counted boolean not null,
  body text not null,
  begins bigint not null default 1,
  blobs_pkey PRIMARY KEY (journal, blob, n)
);

CREATE INDEX blobs_generation ON tape.blobs USING btree (journal, begins) INCLUDE (bytes);

table tape.budgets(
  run bigint not null,
  unit text not null,
  cap bigint not null,
  reserved bigint not null default 0,
  spent bigint not null default 0,
  tenant text not null default ''::text,
  budgets_pkey PRIMARY KEY (run, unit)
);

CREATE INDEX budgets_tenant ON tape.budgets USING btree (tenant, run);

table tape.builds(
  tenant text not null,
  build text not null,
  workflows text not null,
  current boolean not null default false,
  first_at bigint not null,
  seen_at bigint not null,
  builds_pkey PRIMARY KEY (tenant, build)
);

table tape.business_keys(
  tenant text not null,
  scope text not null,
  business_key text not null,
  run bigint not null,
  pos bigint not null,
  business_keys_pkey PRIMARY KEY (tenant, scope, business_key)
);

CREATE INDEX business_keys_run ON tape.business_keys USING btree (run, pos);

table tape.chunks(
  run bigint not null,
  stream text not null,
  chunk_offset bigint not null,
  part bigint not null,
  token bigint not null,
  at bigint not null,
  body text,
  total bigint not null,
  chunks_pkey PRIMARY KEY (run, stream, chunk_offset)
) with (autovacuum_vacuum_scale_factor=0.05);

table tape.dead_letters(
  tenant text not null,
  sink text not null,
  event text not null,
  journal bigint not null,
  seq bigint not null,
  inbox boolean not null,
  kind text not null,
  at bigint not null,
  attempts bigint not null,
  code text not null,
  error text not null,
  state text not null default 'OPEN'::text,
  changed_at bigint not null,
  dead_letters_pkey PRIMARY KEY (tenant, sink, event)
);

CREATE INDEX dead_letters_state ON tape.dead_letters USING btree (tenant, sink, state, at, event);

table tape.effects(
  run bigint not null,
  pos bigint not null,
  sub bigint not null,
  tenant text not null,
  root bigint not null,
  role text not null,
  name text,
  connector text,
  semantics text not null,
  dispatch text not null,
  status text not null,
  authority bigint not null,
  item bigint,
  key text not null,
  business_key text,
  args_hash text,
  args text not null,
  policy text,
  attempt bigint not null default 0,
  attempt_token bigint,
  attempt_nonce bigint,
  send_until bigint,
  reason text,
  outcome text,
  surplus boolean not null,
  uncertain boolean not null default false,
  created_at bigint not null,
  changed_at bigint not null,
  effects_pkey PRIMARY KEY (run, pos, sub)
);

CREATE INDEX effects_in_doubt ON tape.effects USING btree (tenant, run) WHERE (status = ANY (ARRAY['UNKNOWN'::text, 'STUCK'::text]));

CREATE INDEX effects_item ON tape.effects USING btree (item) WHERE (item IS NOT NULL);

CREATE INDEX effects_obligations ON tape.effects USING btree (root) WHERE (role = 'compensation'::text);

CREATE INDEX effects_open ON tape.effects USING btree (tenant, status, changed_at) WHERE (status = ANY (ARRAY['PENDING'::text, 'DISPATCHED'::text, 'UNKNOWN'::text, 'STUCK'::text, 'COMMITTED'::text]));

CREATE INDEX effects_tenant ON tape.effects USING btree (tenant, run, pos, sub);

table tape.gates(
  run bigint not null,
  pos bigint not null,
  tenant text not null,
  name text not null,
  status text not null,
  binds text,
  payload text,
  value text,
  opened_at bigint not null,
  approvers text,
  approvals text not null default ','::text,
  callback text,
  called bigint,
  gates_pkey PRIMARY KEY (run, pos)
);

CREATE INDEX gates_open ON tape.gates USING btree (tenant, opened_at) WHERE (status = 'OPEN'::text);

CREATE INDEX gates_tenant ON tape.gates USING btree (tenant, opened_at);

table tape.idempotency_keys(
  tenant text not null,
  key text not null,
  hash text not null,
  response text not null,
  at bigint not null,
  idempotency_keys_pkey PRIMARY KEY (tenant, key)
);

CREATE INDEX idempotency_keys_at ON tape.idempotency_keys USING btree (at);

table tape.leases(
  journal bigint not null,
  kind text not null,
  tenant text not null,
  run bigint not null,
  token bigint not null,
  nonce bigint,
  owner text,
  label text,
  reactor text,
  ttl_ms bigint not null,
  expires_at bigint not null,
  acquired_at bigint not null,
  reason text,
  renewals bigint not null default 0,
  renewed_at bigint not null,
  longest_gap_ms bigint not null default 0,
  progress bigint not null default 0,
  progress_at bigint not null,
  progress_note text,
  max_stall_ms bigint,
  doomed boolean not null default false,
  paused boolean not null default false,
  stalled boolean not null default false,
  notes bigint not null default 0,
  open boolean not null default true,
  next_reactor text,
  due_at bigint not null default 0,
  last_end_reason text,
  workflow text not null default ''::text,
  queue bigint,
  checkpoint text,
  build text,
  begins bigint not null default 1,
  begins_pos bigint not null default 0,
  begins_notes bigint not null default 0,
  leases_pkey PRIMARY KEY (journal)
) with (fillfactor=60);

CREATE INDEX leases_build ON tape.leases USING btree (tenant, build, journal) WHERE ((build IS NOT NULL) AND open);

CREATE INDEX leases_holders ON tape.leases USING btree (tenant, workflow) WHERE ((owner IS NOT NULL) AND (kind <> 'name'::text));

CREATE INDEX leases_items ON tape.leases USING btree (run) WHERE (kind = 'item'::text);

CREATE INDEX leases_pinned ON tape.leases USING btree (tenant, journal) WHERE ((build IS NOT NULL) AND (next_reactor IS NOT NULL));

CREATE INDEX leases_queue ON tape.leases USING btree (next_reactor, tenant, workflow, due_at) WHERE (next_reactor IS NOT NULL);

CREATE INDEX leases_recovery ON tape.leases USING btree (tenant, journal) WHERE (next_reactor = 'recovery'::text);

CREATE UNIQUE INDEX leases_fence ON tape.leases USING btree (journal, token);

table tape.meta(
  one boolean not null,
  store_id text not null,
  epoch bigint not null,
  token_floor bigint not null,
  next_journal bigint not null,
  timeline text,
  feed_offset bigint not null,
  channel text,
  cursor_key text,
  secret text,
  meta_one_check CHECK (one),
  meta_pkey PRIMARY KEY (one)
);

table tape.migrations(
  number bigint not null,
  name text not null,
  checksum text not null,
  migrations_pkey PRIMARY KEY (number)
);

table tape.names(
  tenant text not null,
  name text not null,
  journal bigint not null,
  names_pkey PRIMARY KEY (tenant, name)
);

CREATE INDEX names_journal ON tape.names USING btree (journal);

table tape.note_keys(
  journal bigint not null,
  key text not null,
  n bigint not null,
  note_keys_pkey PRIMARY KEY (journal, key)
);

table tape.processes(
  tenant text not null,
  owner text not null,
  label text not null,
  at bigint not null,
  body text not null,
  processes_pkey PRIMARY KEY (tenant, owner)
);

CREATE INDEX processes_at ON tape.processes USING btree (at);

table tape.published(
  run bigint not null,
  name text not null,
  value text not null,
  seq bigint not null,
  at bigint not null,
  published_pkey PRIMARY KEY (run, name)
);

table tape.queue_partitions(
  queue bigint not null,
  key text not null,
  class bigint not null,
  vtime bigint not null,
  entered bigint not null default 0,
  running bigint not null default 0,
  waiting bigint not null default 0,
  cap bigint,
  weight bigint not null default 1000,
  tat bigint not null default 0,
  again_at bigint,
  pause text,
  busy boolean default (running > 0),
  ready boolean default ((waiting > 0) AND (pause IS NULL) AND ((cap IS NULL) OR (running < cap)) AND ((class = 0) OR (again_at IS NULL))),
  queue_partitions_pkey PRIMARY KEY (queue, key)
) with (fillfactor=70);

CREATE INDEX queue_partitions_again ON tape.queue_partitions USING btree (queue, again_at) WHERE (again_at IS NOT NULL);

CREATE INDEX queue_partitions_busy ON tape.queue_partitions USING btree (queue) WHERE busy;

CREATE INDEX queue_partitions_ready ON tape.queue_partitions USING btree (queue, class, vtime, entered, key) WHERE ready;

table tape.queue_slots(
  journal bigint not null,
  queue bigint not null,
  key text not null,
  class bigint not null,
  since bigint not null,
  state text not null,
  keeps boolean not null,
  expires boolean not null,
  queue_slots_pkey PRIMARY KEY (journal)
) with (fillfactor=80);

CREATE INDEX queue_slots_held ON tape.queue_slots USING btree (queue, key, since, journal) WHERE (state = 'HELD'::text);

CREATE INDEX queue_slots_waiting ON tape.queue_slots USING btree (queue, key, class, since, journal) WHERE (state = 'QUEUED'::text);

table tape.queues(
  id bigint not null,
  tenant text not null,
  name text not null,
  spec text not null,
  override text,
  concurrency bigint,
  key_concurrency bigint,
  rate_us bigint,
  rate_burst bigint,
  key_rate_us bigint,
  key_rate_burst bigint,
  counts text not null,
  version bigint not null default 1,
  pause text,
  tat bigint not null default 0,
  vnow bigint not null default 0,
  started bigint not null default 0,
  queues_pkey PRIMARY KEY (id)
) with (fillfactor=50);

CREATE UNIQUE INDEX queues_name ON tape.queues USING btree (tenant, name);

table tape.quotas(
  tenant text not null,
  runs bigint,
  bytes bigint,
  schedules bigint,
  streams bigint,
  runs_used bigint not null default 0,
  runs_at bigint not null default 0,
  bytes_used bigint not null default 0,
  metered bigint,
  metered_at bigint not null default 0,
  quotas_pkey PRIMARY KEY (tenant)
);

CREATE INDEX quotas_limited ON tape.quotas USING btree (tenant) WHERE ((runs IS NOT NULL) OR (bytes IS NOT NULL));

table tape.records(
  journal bigint not null,
  seq bigint not null,
  token bigint not null,
  stamp bigint not null,
  at bigint not null,
  kind text not null,
  body text not null
) with (autovacuum_vacuum_insert_scale_factor=0.5);

CREATE INDEX records_feed ON tape.records USING btree (stamp);

CREATE UNIQUE INDEX records_head ON tape.records USING btree (journal, seq);

table tape.replies(
  journal bigint not null,
  n bigint not null,
  body text not null,
  at bigint not null,
  replies_pkey PRIMARY KEY (journal, n)
);

table tape.residents(
  tenant text not null,
  state text not null,
  mover text,
  residents_pkey PRIMARY KEY (tenant)
);

CREATE INDEX residents_leaving ON tape.residents USING btree (state) WHERE ((state <> 'HERE'::text) AND (state <> 'GONE'::text));

table tape.retention(
  journal bigint not null,
  tenant text not null,
  due_at bigint not null,
  retention_pkey PRIMARY KEY (journal)
);

CREATE INDEX retention_due ON tape.retention USING btree (tenant, due_at);

table tape.run_labels(
  tenant text not null,
  key text not null,
  value text not null,
  journal bigint not null,
  run_labels_pkey PRIMARY KEY (tenant, key, value, journal)
);

CREATE INDEX run_labels_journal ON tape.run_labels USING btree (journal);

table tape.runs(
  journal bigint not null,
  tenant text not null,
  id text not null,
  workflow text not null,
  version text,
  phase text not null,
  cause text,
  stuck_from text,
  input_hash text not null,
  labels text,
  outcome text,
  parent bigint,
  parent_pos bigint,
  root bigint not null,
  created_at bigint not null,
  ended_at bigint,
  counted boolean not null default false,
  labelled boolean,
  runs_pkey PRIMARY KEY (journal)
) with (fillfactor=85);

CREATE INDEX runs_counted ON tape.runs USING btree (tenant) WHERE (counted AND (ended_at IS NULL));

CREATE INDEX runs_created ON tape.runs USING btree (tenant, created_at, journal);

CREATE INDEX runs_ended ON tape.runs USING btree (tenant, ended_at) WHERE (ended_at IS NOT NULL);

CREATE INDEX runs_members ON tape.runs USING btree (root) WHERE (root <> journal);

CREATE INDEX runs_parent ON tape.runs USING btree (parent) WHERE (parent IS NOT NULL);

CREATE INDEX runs_phase ON tape.runs USING btree (tenant, phase, journal) WHERE (phase <> ALL (ARRAY['LIVE'::text, 'COMPLETED'::text]));

CREATE INDEX runs_unlisted ON tape.runs USING btree (tenant, journal) WHERE ((labels IS NOT NULL) AND (labelled IS NULL));

CREATE UNIQUE INDEX runs_id ON tape.runs USING btree (tenant, id);

table tape.schedules(
  tenant text not null,
  id text not null,
  version bigint not null,
  spec text not null,
  next_at bigint,
  paused boolean not null,
  schedules_pkey PRIMARY KEY (tenant, id)
);

CREATE INDEX schedules_queue ON tape.schedules USING btree (tenant, next_at) WHERE ((next_at IS NOT NULL) AND (NOT paused));

table tape.shard_identity(
  one boolean not null default true,
  set_id text not null,
  number bigint not null,
  name text not null,
  moves bigint not null default 0,
  shard_identity_one_check CHECK (one),
  shard_identity_pkey PRIMARY KEY (one)
);

table tape.shard_moves(
  tenant text not null,
  source bigint not null,
  target bigint not null,
  phase text not null,
  mover text not null,
  by text not null,
  reason text not null,
  at bigint not null,
  shard_moves_pkey PRIMARY KEY (tenant)
);

table tape.shard_tenants(
  tenant text not null,
  shard bigint not null,
  version bigint not null default 1,
  at bigint not null,
  shard_tenants_pkey PRIMARY KEY (tenant)
);

table tape.shards(
  number bigint not null,
  name text not null,
  state text not null,
  added_at bigint not null,
  shards_pkey PRIMARY KEY (number)
);

CREATE UNIQUE INDEX shards_name ON tape.shards USING btree (name);

table tape.streams(
  run bigint not null,
  name text not null,
  retain_ms bigint,
  streams_pkey PRIMARY KEY (run, name)
);

CREATE INDEX streams_retained ON tape.streams USING btree (run, name) WHERE (retain_ms IS NOT NULL);

table tape.timers(
  run bigint not null,
  pos bigint not null,
  purpose text not null,
  tenant text not null,
  status text not null,
  due_at bigint not null,
  timers_pkey PRIMARY KEY (run, pos, purpose)
);

CREATE INDEX timers_queue ON tape.timers USING btree (tenant, due_at) WHERE (status = 'SET'::text);

CREATE INDEX timers_tenant ON tape.timers USING btree (tenant, due_at);

table tape.tokens(
  id text not null,
  tenant text not null,
  name text not null,
  role text not null,
  hash text not null,
  created_at bigint not null,
  expires_at bigint,
  revoked_at bigint,
  used_at bigint,
  tokens_pkey PRIMARY KEY (id)
);

table tape.tombstones(
  tenant text not null,
  id text not null,
  token bigint not null,
  at bigint not null,
  journal bigint,
  created_at bigint,
  ended_at bigint,
  archive text,
  tombstones_pkey PRIMARY KEY (tenant, id)
);

CREATE INDEX tombstones_journal ON tape.tombstones USING btree (journal) WHERE (journal IS NOT NULL);

table tape.val_log(
  tenant text not null,
  key text not null,
  version bigint not null,
  value text,
  at bigint not null,
  val_log_pkey PRIMARY KEY (tenant, key, version)
);

table tape.vals(
  tenant text not null,
  key text not null,
  version bigint not null,
  value text,
  at bigint not null,
  vals_pkey PRIMARY KEY (tenant, key)
);

table tape.witness(
  id bigint not null,
  at bigint not null,
  void boolean not null default false,
  witness_pkey PRIMARY KEY (id)
);

CREATE OR REPLACE FUNCTION tape.assert_resident()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  whose text := coalesce(new.tenant, old.tenant);
  place text;
begin
  if current_setting('transaction_isolation') = 'read committed' then
    select r.state into place from tape.residents r where r.tenant = whose;
  else
    select r.state into place from tape.residents r where r.tenant = whose for share;
  end if;
  if place in ('MOVING', 'ARRIVING', 'GONE') and current_setting('durable_tape.mover', true) is distinct from 'on' then
    raise exception 'the tenant moves to another shard: here it is %', place using errcode = 'TP001';
  end if;
  return null;
end $function$;

CREATE OR REPLACE FUNCTION tape.guard_residents()
 RETURNS void
 LANGUAGE plpgsql
AS $function$
declare
  guarded record;
begin
  for guarded in select * from (values
    ('leases', 'insert or delete or update of token, notes'), ('vals', 'insert or update or delete'),
    ('schedules', 'insert or update or delete'), ('audit', 'insert'), ('idempotency_keys', 'insert'),
    ('builds', 'insert or update or delete'), ('queues', 'insert or update of spec, override, pause'),
    ('quotas', 'insert or update of runs, bytes, schedules, streams'), ('tokens', 'insert or update of revoked_at')
  ) g(name, events)
  loop
    if not exists (select 1 from pg_catalog.pg_trigger t where t.tgrelid = ('tape.' || guarded.name)::regclass and t.tgname = 'residents') then
      execute 'create trigger residents after ' || guarded.events || ' on tape.' || guarded.name
        || ' for each row execute function tape.assert_resident()';
    end if;
  end loop;
end $function$;

CREATE OR REPLACE FUNCTION tape.now_ms()
 RETURNS bigint
 LANGUAGE sql
RETURN (floor((EXTRACT(epoch FROM clock_timestamp()) * (1000)::numeric)))::bigint;

CREATE OR REPLACE FUNCTION tape.on_timeline(recorded text)
 RETURNS boolean
 LANGUAGE sql
AS $function$
  select recorded is null or recorded = coalesce(tape.timeline(), recorded)
$function$;

CREATE OR REPLACE FUNCTION tape.stamp_of(journal bigint, seq bigint)
 RETURNS bigint
 LANGUAGE sql
AS $function$
  select r.stamp from tape.records r where r.journal = $1 and r.seq = $2
$function$;

CREATE OR REPLACE FUNCTION tape.timeline()
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
  if pg_is_in_recovery() then return null; end if;
  return substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
exception when others then return null;
end $function$;

S audit_id_seq;

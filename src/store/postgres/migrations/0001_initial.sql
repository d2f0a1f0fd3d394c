-- The whole schema. Times named *_at are milliseconds since 1970 by the clock of this server, and of no other host.
create function tape.now_ms() returns bigint language sql volatile
  return floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
-- The timeline of the server's log changes when a standby is promoted or a backup recovered. Some services do not reveal
-- it; then an operator must declare the restore.
create function tape.timeline() returns text language plpgsql volatile as $$
begin
  if pg_is_in_recovery() then return null; end if;
  return substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
exception when others then return null;
end $$;
-- Whether the server is the one that the store knows: its timeline is the recorded one, or is not revealed. On another
-- one, a promoted standby, no earlier term may write or renew, and no token or number is issued, until the epoch is
-- raised: a holder may have seen what the standby has lost. One function, so that no statement can forget a part of it.
-- Plain SQL without a query: the planner inlines it, where a call would cost each statement more.
create function tape.on_timeline(recorded text) returns boolean language sql volatile as $$
  select recorded is null or recorded = coalesce(tape.timeline(), recorded)
$$;
create table tape.meta(
  one boolean primary key check (one),
  store_id text not null,
  epoch bigint not null,
  token_floor bigint not null,          -- tokens are issued above it: the store epoch in the token's high bits
  next_journal bigint not null,
  timeline text,
  feed_offset bigint not null,
  channel text,                         -- of wake hints: every role may listen and notify, but must read this name first
  cursor_key text                       -- seals the cursors of one tenant's feed: a position counts records of all tenants
);

-- Live status is derived, not stored: a LIVE run is RUNNING when its lease has an owner, RUNNABLE when a reactor is
-- wanted, else WAITING. So steps, parks, business keys and notes never touch this table.
create table tape.runs(
  journal bigint primary key,           -- small surrogate of the caller's id: keeps (journal, seq) narrow
  tenant text not null,
  id text collate "C" not null,         -- found by prefix in the order of its bytes, as on every other store
  workflow text not null, version text,
  phase text not null, cause text, stuck_from text, input_hash text not null, labels text, outcome text,
  parent bigint, parent_pos bigint, root bigint not null,
  created_at bigint not null, ended_at bigint,
  counted boolean not null default false -- its tenant has a limit, and the run counts against it until it ends
) with (fillfactor = 85);
create unique index runs_id on tape.runs(tenant, id);
create index runs_parent on tape.runs(parent) where parent is not null;
create index runs_tree on tape.runs(root) where parent is not null;
create index runs_ended on tape.runs(tenant, ended_at) where ended_at is not null;
-- Lists in order of creation, and counts of how many started when.
create index runs_created on tape.runs(tenant, created_at, journal);
-- Runs that neither are under way nor completed: few, and the ones operators search for.
create index runs_phase on tape.runs(tenant, phase, journal) where phase not in ('LIVE', 'COMPLETED');
create index runs_counted on tape.runs(tenant) where counted and ended_at is null; -- empty while no tenant has a limit

create table tape.leases(
  journal bigint primary key,
  kind text not null, tenant text not null, run bigint not null,
  token bigint not null, nonce bigint, owner text, label text, reactor text,
  ttl_ms bigint not null, expires_at bigint not null, acquired_at bigint not null, reason text,
  renewals bigint not null default 0, renewed_at bigint not null, longest_gap_ms bigint not null default 0,
  progress bigint not null default 0, progress_at bigint not null, progress_note text, max_stall_ms bigint,
  doomed boolean not null default false, paused boolean not null default false, stalled boolean not null default false,
  notes bigint not null default 0,      -- notes ever sent: parking and ending require notes = taken
  open boolean not null default true,   -- false once the run is terminal: notes are refused
  next_reactor text, due_at bigint not null default 0, last_end_reason text,
  workflow text not null default ''     -- of a run
) with (fillfactor = 60);
-- Makes the token a key column, so that FOR KEY SHARE conflicts with a takeover and with nothing else. Without this very
-- index (unique, not partial, no expression, token among its keys) the fence is open: a test pins it.
create unique index leases_fence on tape.leases(journal, token);
-- Queues by tenant and workflow: a poll never walks over rows of another tenant, nor over runs of workflows that it does
-- not serve. No index has a column that a heartbeat changes.
create index leases_queue on tape.leases(next_reactor, tenant, workflow, due_at) where next_reactor is not null;
create index leases_holders on tape.leases(tenant, workflow) where owner is not null and kind <> 'name';
create index leases_recovery on tape.leases(tenant, journal) where next_reactor = 'recovery';
create index leases_items on tape.leases(run) where kind = 'item';

create table tape.names(
  tenant text not null, name text not null, journal bigint not null, primary key(tenant, name)
);
create index names_journal on tape.names(journal);

create table tape.records(
  journal bigint not null,              -- negative: the inbox of that journal
  seq bigint not null, token bigint not null, stamp bigint not null, at bigint not null, kind text not null,
  body text not null                    -- text, not jsonb: that refuses \u0000 and reorders keys
) with (autovacuum_vacuum_insert_scale_factor = 0.5);
create unique index records_head on tape.records(journal, seq);
create index records_feed on tape.records(stamp);

create table tape.note_keys(
  journal bigint not null, key text not null, n bigint not null, primary key(journal, key)
);

create table tape.effects(
  run bigint not null, pos bigint not null, sub bigint not null,
  tenant text not null, root bigint not null, role text not null, name text, connector text,
  semantics text not null, dispatch text not null, status text not null,
  authority bigint not null, item bigint, key text not null, business_key text, args_hash text,
  args text not null, policy text, attempt bigint not null default 0,
  attempt_token bigint, attempt_nonce bigint, send_until bigint,
  reason text, outcome text, surplus boolean not null, uncertain boolean not null default false,
  created_at bigint not null, changed_at bigint not null,
  primary key(run, pos, sub)
);
create index effects_open on tape.effects(tenant, status, changed_at)
  where status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED');
create index effects_in_doubt on tape.effects(tenant, run) where status in ('UNKNOWN', 'STUCK');
create index effects_obligations on tape.effects(root) where role = 'compensation';
create index effects_item on tape.effects(item) where item is not null;
-- Lists of one tenant, never by way of another's rows.
create index effects_tenant on tape.effects(tenant, run, pos, sub);

create table tape.business_keys(
  tenant text not null, scope text not null, business_key text not null, run bigint not null, pos bigint not null,
  primary key(tenant, scope, business_key)
);
create index business_keys_run on tape.business_keys(run, pos);

create table tape.gates(
  run bigint not null, pos bigint not null, tenant text not null, name text not null, status text not null,
  binds text, payload text, value text, opened_at bigint not null,
  approvers text,                       -- who may signal the gate; null: everyone
  approvals text not null default ',',  -- the notes that approvers have sent: no other signal resolves the gate
  primary key(run, pos)
);
create index gates_open on tape.gates(tenant, opened_at) where status = 'OPEN';
create index gates_tenant on tape.gates(tenant, opened_at);

create table tape.timers(
  run bigint not null, pos bigint not null, purpose text not null, tenant text not null, status text not null,
  due_at bigint not null, primary key(run, pos, purpose)
);
create index timers_queue on tape.timers(tenant, due_at) where status = 'SET';
create index timers_tenant on tape.timers(tenant, due_at);

create table tape.budgets(
  run bigint not null, unit text not null, cap bigint not null,
  reserved bigint not null default 0, spent bigint not null default 0, tenant text not null default '',
  primary key(run, unit)
);
create index budgets_tenant on tape.budgets(tenant, run); -- caps of a tenant's runs, newest first

create table tape.vals(
  tenant text not null, key text not null, version bigint not null, value text, at bigint not null,
  primary key(tenant, key)
);
create table tape.val_log(
  tenant text not null, key text not null, version bigint not null, value text, at bigint not null,
  primary key(tenant, key, version)
);

create table tape.schedules(
  tenant text not null, id text not null, version bigint not null, spec text not null, next_at bigint,
  paused boolean not null, primary key(tenant, id)
);
create index schedules_queue on tape.schedules(tenant, next_at) where next_at is not null and not paused;

-- Ids of deleted runs, which stay reserved. A list whose cursor is a run that was deleted continues at its position.
create table tape.tombstones(
  tenant text not null, id text not null, token bigint not null, at bigint not null,
  journal bigint, created_at bigint, ended_at bigint, primary key(tenant, id)
);
create index tombstones_journal on tape.tombstones(journal) where journal is not null;

create table tape.witness(
  id bigint primary key, at bigint not null,
  void boolean not null default false   -- written by a process that asked: the transaction of this name never happened
);

-- Results of calls that may be repeated: the same key gets the same result. Kept for a day.
create table tape.idempotency_keys(
  tenant text not null, key text not null, hash text not null, response text not null, at bigint not null,
  primary key(tenant, key)
);
create index idempotency_keys_at on tape.idempotency_keys(at);

-- Credentials of a server's callers. The secret is not stored, only its hash.
create table tape.tokens(
  id text primary key, tenant text not null, name text not null, role text not null, hash text not null,
  created_at bigint not null, expires_at bigint, revoked_at bigint, used_at bigint
);

-- Process reports, for operators. Nothing else depends on them.
create table tape.processes(
  tenant text not null, owner text collate "C" not null, label text collate "C" not null, at bigint not null, body text not null,
  primary key(tenant, owner)
);
create index processes_at on tape.processes(at);

-- Operator actions, apart from the journals: deleting a run does not delete them. `n` is dense in each tenant, and each
-- entry's hash covers the previous entry.
create table tape.audit(
  id bigint generated always as identity primary key, tenant text not null, n bigint not null, at bigint not null,
  journal bigint not null, subject text collate "C", body text not null, hash text not null
);
create unique index audit_n on tape.audit(tenant, n);
create table tape.audit_heads(tenant text primary key, n bigint not null, hash text not null);

-- Limits of tenants, and how much they use. The row without a tenant has the defaults, and how far the records have been
-- measured. A limit that is null is the default's; -1 is none.
create table tape.quotas(
  tenant text collate "C" not null primary key, runs bigint, bytes bigint, schedules bigint, streams bigint,
  runs_used bigint not null default 0, runs_at bigint not null default 0, bytes_used bigint not null default 0,
  metered bigint, metered_at bigint not null default 0
);
-- Every batch of starts checks whether any tenant has a limit, and rows of tenants without one may be many.
create index quotas_limited on tape.quotas(tenant) where runs is not null or bytes is not null;

insert into tape.meta(one, store_id, epoch, token_floor, next_journal, timeline, feed_offset, channel, cursor_key)
values (true, gen_random_uuid()::text, 0, 0, 2, tape.timeline(), 0, 'tape_' || replace(gen_random_uuid()::text, '-', ''),
  encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex'));
insert into tape.leases(journal, kind, tenant, run, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at)
values (1, 'store', '', 1, 0, 0, 0, 0, 0, 0);
insert into tape.records(journal, seq, token, stamp, at, kind, body)
values (1, 1, 0, pg_current_xact_id()::text::bigint, tape.now_ms(), 'store.restored', '{"v":1,"epoch":0,"reason":"created","ended":0}');

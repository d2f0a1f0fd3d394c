-- The whole schema. Times named *_at are wall milliseconds, except expires_at, acquired_at, renewed_at, progress_at and
-- due_at of leases: those are on the lease clock (CLOCK_MONOTONIC of the boot named in meta).
--
-- Sleeps and other relative times count by the clock of the machine's boot, which cannot be set; only a date that was
-- given as a date follows the wall clock. Relative times are stored as a date, too: the boot's clock plus `anchor`, the
-- difference between the two clocks when the first process of this boot opened the file. A new boot has a new anchor,
-- and older timers then count by its wall clock.
create table meta(
  one integer primary key check (one = 1),
  store_id text not null,
  epoch integer not null,
  token_floor integer not null,          -- tokens are issued above it: the store epoch in the token's high bits
  next_journal integer not null,
  boot text not null,
  anchor integer,                        -- of relative times, see above
  file text,                             -- which file this is: a copy beside it has the same text but is another file
  cursor_key text                        -- seals the cursors of one tenant's feed: a position counts records of all tenants
) strict;

-- Live status is derived, not stored: a LIVE run is RUNNING when its lease has an owner, RUNNABLE when a reactor is
-- wanted, else WAITING. So steps, parks, business keys and notes never touch this table.
create table runs(
  journal integer primary key,           -- small surrogate of the caller's id: keeps (journal, seq) narrow
  tenant text not null, id text not null, workflow text not null, version text,
  phase text not null, cause text, stuck_from text, input_hash text not null, labels text, outcome text,
  parent integer, parent_pos integer, root integer not null,
  created_at integer not null, ended_at integer,
  counted integer not null default 0     -- 1: its tenant has a limit, and the run counts against it until it ends
) strict;
create unique index runs_id on runs(tenant, id);
create index runs_parent on runs(parent) where parent is not null;
create index runs_tree on runs(root) where parent is not null;
create index runs_ended on runs(tenant, ended_at) where ended_at is not null;
create index runs_created on runs(tenant, created_at); -- lists in order of creation, and counts of how many started when
-- Runs that neither are under way nor completed: few, and the ones operators search for.
create index runs_phase on runs(tenant, phase) where phase not in ('LIVE', 'COMPLETED');
create index runs_counted on runs(tenant) where counted = 1 and ended_at is null; -- empty while no tenant has a limit

create table leases(
  journal integer primary key,
  kind text not null, tenant text not null, run integer not null,
  token integer not null, nonce integer, owner text, label text, reactor text,
  ttl_ms integer not null, expires_at integer not null, acquired_at integer not null, reason text,
  renewals integer not null default 0, renewed_at integer not null, longest_gap_ms integer not null default 0,
  progress integer not null default 0, progress_at integer not null, progress_note text, max_stall_ms integer,
  doomed integer not null default 0, paused integer not null default 0, stalled integer not null default 0,
  notes integer not null default 0,      -- notes ever sent: parking and ending require notes = taken
  open integer not null default 1,       -- 0 once the run is terminal: notes are refused
  next_reactor text, due_at integer not null default 0, last_end_reason text,
  workflow text not null default ''      -- of a run
) strict;
-- Queues by tenant and workflow: a poll never walks over rows of another tenant, nor over runs of workflows that it does
-- not serve. No index has a column that a heartbeat changes.
create index leases_due on leases(next_reactor, tenant, workflow, due_at) where next_reactor is not null;
create index leases_held on leases(tenant, workflow) where owner is not null and kind <> 'name';
create index leases_recovery on leases(tenant) where next_reactor = 'recovery';
create index leases_items on leases(run) where kind = 'item';

create table names(
  tenant text not null, name text not null, journal integer not null, primary key(tenant, name)
) strict, without rowid;
create index names_journal on names(journal);

create table records(
  id integer primary key,                -- feed position; pruning appends a record, so the maximum is never deleted
  journal integer not null,              -- negative: the inbox of that journal
  seq integer not null, token integer not null, at integer not null, kind text not null, body text not null
) strict;
create unique index records_head on records(journal, seq);

create table note_keys(
  journal integer not null, key text not null, n integer not null, primary key(journal, key)
) strict, without rowid;

create table effects(
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
create index effects_open on effects(tenant, status, changed_at)
  where status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED');
create index effects_in_doubt on effects(tenant, run) where status in ('UNKNOWN', 'STUCK');
create index effects_obligations on effects(root) where role = 'compensation';
create index effects_item on effects(item) where item is not null;
create index effects_tenant on effects(tenant); -- lists of one tenant, never by way of another's rows

create table business_keys(
  tenant text not null, scope text not null, business_key text not null, run integer not null, pos integer not null,
  primary key(tenant, scope, business_key)
) strict, without rowid;
create index business_keys_run on business_keys(run, pos);

create table gates(
  run integer not null, pos integer not null, tenant text not null, name text not null, status text not null,
  binds text, payload text, value text, opened_at integer not null,
  approvers text,                        -- who may signal the gate; null: everyone
  approvals text not null default ',',   -- the notes that approvers have sent: no other signal resolves the gate
  primary key(run, pos)
) strict, without rowid;
create index gates_open on gates(tenant, opened_at) where status = 'OPEN';
create index gates_tenant on gates(tenant, opened_at);

create table timers(
  run integer not null, pos integer not null, purpose text not null, tenant text not null, status text not null,
  due_at integer not null,
  steady integer not null default 0,     -- 1: a relative time, see meta.anchor
  primary key(run, pos, purpose)
) strict, without rowid;
create index timers_due on timers(tenant, steady, due_at) where status = 'SET';
create index timers_tenant on timers(tenant, steady, due_at);

create table budgets(
  run integer not null, unit text not null, cap integer not null,
  reserved integer not null default 0, spent integer not null default 0, tenant text not null default '',
  primary key(run, unit)
) strict, without rowid;
create index budgets_tenant on budgets(tenant, run); -- caps of a tenant's runs, newest first

create table vals(
  tenant text not null, key text not null, version integer not null, value text, at integer not null,
  primary key(tenant, key)
) strict, without rowid;
create table val_log(
  tenant text not null, key text not null, version integer not null, value text, at integer not null,
  primary key(tenant, key, version)
) strict, without rowid;

create table schedules(
  tenant text not null, id text not null, version integer not null, spec text not null, next_at integer,
  paused integer not null, primary key(tenant, id)
) strict, without rowid;
create index schedules_due on schedules(tenant, next_at) where next_at is not null and paused = 0;

-- Ids of deleted runs, which stay reserved. A list whose cursor is a run that was deleted continues at its position.
create table tombstones(
  tenant text not null, id text not null, token integer not null, at integer not null,
  journal integer, created_at integer, ended_at integer, primary key(tenant, id)
) strict, without rowid;
create index tombstones_journal on tombstones(journal) where journal is not null;

create table witness(id integer primary key, at integer not null) strict;

-- Results of calls that may be repeated: the same key gets the same result. Kept for a day.
create table idempotency_keys(
  tenant text not null, key text not null, hash text not null, response text not null, at integer not null,
  primary key(tenant, key)
) strict, without rowid;
create index idempotency_keys_at on idempotency_keys(at);

-- Credentials of a server's callers. The secret is not stored, only its hash.
create table tokens(
  id text primary key, tenant text not null, name text not null, role text not null, hash text not null,
  created_at integer not null, expires_at integer, revoked_at integer, used_at integer
) strict, without rowid;

-- Process reports, for operators. Nothing else depends on them.
create table processes(
  tenant text not null, owner text not null, label text not null, at integer not null, body text not null,
  primary key(tenant, owner)
) strict, without rowid;
create index processes_at on processes(at);

-- Operator actions, apart from the journals: deleting a run does not delete them. `n` is dense in each tenant, and each
-- entry's hash covers the previous entry.
create table audit(
  id integer primary key, tenant text not null, n integer not null, at integer not null, journal integer not null,
  subject text, body text not null, hash text not null
) strict;
create unique index audit_n on audit(tenant, n);
create table audit_heads(tenant text primary key, n integer not null, hash text not null) strict, without rowid;

-- Limits of tenants, and how much they use. The row without a tenant has the defaults, and how far the records have been
-- measured. A limit that is null is the default's; -1 is none.
create table quotas(
  tenant text not null primary key, runs integer, bytes integer, schedules integer, streams integer,
  runs_used integer not null default 0, runs_at integer not null default 0, bytes_used integer not null default 0,
  metered integer, metered_at integer not null default 0
) strict, without rowid;

insert into meta(one, store_id, epoch, token_floor, next_journal, boot, cursor_key)
values (1, lower(hex(randomblob(16))), 0, 0, 2, '', lower(hex(randomblob(32))));
insert into leases(journal, kind, tenant, run, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at)
values (1, 'store', '', 1, 0, 0, 0, 0, 0, 0);
insert into records(journal, seq, token, at, kind, body)
values (1, 1, 0, 0, 'store.restored', '{"v":1,"epoch":0,"reason":"created","ended":0}');

-- The whole ground. Times named *_at are wall milliseconds, except expires_at, acquired_at, renewed_at, progress_at and
-- due_at of leases: those are on the lease clock (CLOCK_MONOTONIC of the boot named in meta).
create table meta(
  one integer primary key check (one = 1),
  store_id text not null,
  epoch integer not null,
  token_floor integer not null,          -- tokens are issued above it: the store epoch in the token's high bits
  next_journal integer not null,
  boot text not null
) strict;

-- Live status is derived, not stored: a LIVE run is RUNNING when its lease has an owner, RUNNABLE when somebody is
-- wanted, else WAITING. So steps, parks, business_keys and notes never touch this table.
create table runs(
  journal integer primary key,           -- small surrogate of the caller's id: keeps (journal, seq) narrow
  tenant text not null, id text not null, workflow text not null, version text,
  phase text not null, cause text, stuck_from text, input_hash text not null, labels text, outcome text,
  parent integer, parent_pos integer, root integer not null,
  created_at integer not null, ended_at integer
) strict;
create unique index runs_id on runs(tenant, id);
create index runs_parent on runs(parent) where parent is not null;
create index runs_tree on runs(root) where parent is not null;
create index runs_open on runs(tenant, phase) where phase in ('LIVE', 'ENDING', 'COMPENSATING', 'STUCK');
create index runs_ended on runs(tenant, ended_at) where ended_at is not null;

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
  next_reactor text, due_at integer not null default 0, last_end text
) strict;
create index leases_due on leases(next_reactor, due_at) where next_reactor is not null;
create index leases_held on leases(journal) where owner is not null; -- not on expires_at: heartbeats touch no index
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
create index records_operator on records(id) where kind = 'operator.action';

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
  reason text, outcome text, surplus integer not null, created_at integer not null, changed_at integer not null,
  primary key(run, pos, sub)
) strict, without rowid;
create index effects_open on effects(tenant, status, changed_at)
  where status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED');
create index effects_owed on effects(root) where role = 'compensation';
create index effects_item on effects(item) where item is not null;

create table business_keys(
  tenant text not null, scope text not null, business_key text not null, run integer not null, pos integer not null,
  primary key(tenant, scope, business_key)
) strict, without rowid;
create index business_keys_run on business_keys(run, pos);

create table gates(
  run integer not null, pos integer not null, tenant text not null, name text not null, status text not null,
  binds text, payload text, value text, opened_at integer not null, primary key(run, pos)
) strict, without rowid;
create index gates_open on gates(tenant, opened_at) where status = 'OPEN';

create table timers(
  run integer not null, pos integer not null, purpose text not null, tenant text not null, status text not null,
  due_at integer not null, primary key(run, pos, purpose)
) strict, without rowid;
create index timers_due on timers(due_at) where status = 'SET';

create table budgets(
  run integer not null, unit text not null, cap integer not null,
  reserved integer not null default 0, spent integer not null default 0, primary key(run, unit)
) strict, without rowid;

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
create index schedules_due on schedules(next_at) where next_at is not null and paused = 0;

create table tombstones(
  tenant text not null, id text not null, token integer not null, at integer not null, primary key(tenant, id)
) strict, without rowid;

create table witness(id integer primary key, at integer not null) strict;

insert into meta(one, store_id, epoch, token_floor, next_journal, boot) values (1, lower(hex(randomblob(16))), 0, 0, 2, '');
insert into leases(journal, kind, tenant, run, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at)
values (1, 'store', '', 1, 0, 0, 0, 0, 0, 0);
insert into records(journal, seq, token, at, kind, body)
values (1, 1, 0, 0, 'store.restored', '{"v":1,"epoch":0,"reason":"created","ended":0}');

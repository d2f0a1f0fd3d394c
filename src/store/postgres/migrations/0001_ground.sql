-- The whole ground. Times named *_at are milliseconds since 1970 by the clock of this server, and of no other host.
create function tape.now_ms() returns bigint language sql volatile
  return floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
-- The timeline of the server's log changes when a standby is promoted or a backup recovered. Some services refuse to
-- tell; then an operator must say so.
create function tape.timeline() returns text language plpgsql volatile as $$
begin
  if pg_is_in_recovery() then return null; end if;
  return substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
exception when others then return null;
end $$;
create table tape.meta(
  one boolean primary key check (one),
  store_id text not null,
  epoch bigint not null,
  token_floor bigint not null,          -- tokens are issued above it: the store epoch in the token's high bits
  next_journal bigint not null,
  timeline text,
  feed_offset bigint not null
);
-- Where a record stands in the feed: the number of its transaction, raised over restores.
create function tape.stamp() returns bigint language sql volatile
  return pg_current_xact_id()::text::bigint + (select feed_offset from tape.meta);

-- Live status is derived, not stored: a LIVE run is RUNNING when its lease has an owner, RUNNABLE when somebody is
-- wanted, else WAITING. So steps, parks, business_keys and notes never touch this table.
create table tape.runs(
  journal bigint primary key,           -- small surrogate of the caller's id: keeps (journal, seq) narrow
  tenant text not null, id text not null, workflow text not null, version text,
  phase text not null, cause text, stuck_from text, input_hash text not null, labels text, outcome text,
  parent bigint, parent_pos bigint, root bigint not null,
  created_at bigint not null, ended_at bigint
) with (fillfactor = 85);
create unique index runs_id on tape.runs(tenant, id);
create index runs_parent on tape.runs(parent) where parent is not null;
create index runs_tree on tape.runs(root) where parent is not null;
create index runs_open on tape.runs(tenant, phase) where phase in ('LIVE', 'ENDING', 'COMPENSATING', 'STUCK');
create index runs_ended on tape.runs(tenant, ended_at) where ended_at is not null;

create table tape.leases(
  journal bigint primary key,
  kind text not null, tenant text not null, run bigint not null,
  token bigint not null, nonce bigint, owner text, label text, reactor text,
  ttl_ms bigint not null, expires_at bigint not null, acquired_at bigint not null, reason text,
  renewals bigint not null default 0, renewed_at bigint not null, longest_gap_ms bigint not null default 0,
  progress bigint not null default 0, progress_at bigint not null, progress_note text, max_stall_ms bigint,
  doomed boolean not null default false, paused boolean not null default false, stalled boolean not null default false,
  notes bigint not null default 0,      -- notes ever sent: parking and ending require notes = taken
  open boolean not null default true,       -- false once the run is terminal: notes are refused
  next_reactor text, due_at bigint not null default 0, last_end text
) with (fillfactor = 60);
-- Makes the token a key column, so that FOR KEY SHARE conflicts with a takeover and with nothing else. Without this very
-- index (unique, not partial, no expression, token among its keys) the fence is open: a test pins it.
create unique index leases_fence on tape.leases(journal, token);
create index leases_due on tape.leases(next_reactor, due_at) where next_reactor is not null;
create index leases_held on tape.leases(journal) where owner is not null; -- not on expires_at: heartbeats touch no index
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
create index records_operator on tape.records(stamp) where kind = 'operator.action';

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
  reason text, outcome text, surplus boolean not null, created_at bigint not null, changed_at bigint not null,
  primary key(run, pos, sub)
);
create index effects_open on tape.effects(tenant, status, changed_at)
  where status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED');
create index effects_owed on tape.effects(root) where role = 'compensation';
create index effects_item on tape.effects(item) where item is not null;

create table tape.business_keys(
  tenant text not null, scope text not null, business_key text not null, run bigint not null, pos bigint not null,
  primary key(tenant, scope, business_key)
);
create index business_keys_run on tape.business_keys(run, pos);

create table tape.gates(
  run bigint not null, pos bigint not null, tenant text not null, name text not null, status text not null,
  binds text, payload text, value text, opened_at bigint not null, primary key(run, pos)
);
create index gates_open on tape.gates(tenant, opened_at) where status = 'OPEN';

create table tape.timers(
  run bigint not null, pos bigint not null, purpose text not null, tenant text not null, status text not null,
  due_at bigint not null, primary key(run, pos, purpose)
);
create index timers_due on tape.timers(due_at) where status = 'SET';

create table tape.budgets(
  run bigint not null, unit text not null, cap bigint not null,
  reserved bigint not null default 0, spent bigint not null default 0, primary key(run, unit)
);

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
create index schedules_due on tape.schedules(next_at) where next_at is not null and not paused;

create table tape.tombstones(
  tenant text not null, id text not null, token bigint not null, at bigint not null, primary key(tenant, id)
);

create table tape.witness(
  id bigint primary key, at bigint not null,
  void boolean not null default false   -- written by somebody who asked: the transaction of this name never happened
);

insert into tape.meta(one, store_id, epoch, token_floor, next_journal, timeline, feed_offset)
values (true, gen_random_uuid()::text, 0, 0, 2, tape.timeline(), 0);
insert into tape.leases(journal, kind, tenant, run, token, ttl_ms, expires_at, acquired_at, renewed_at, progress_at)
values (1, 'store', '', 1, 0, 0, 0, 0, 0, 0);
insert into tape.records(journal, seq, token, stamp, at, kind, body)
values (1, 1, 0, tape.stamp(), tape.now_ms(), 'store.restored', '{"v":1,"epoch":0,"reason":"created","ended":0}');

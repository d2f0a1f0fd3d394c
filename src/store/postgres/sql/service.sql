-- name: audit.add
-- unfenced: with the row of audit.head locked
-- writes: audit
insert into tape.audit(tenant, n, at, journal, subject, body, hash) values (:tenant, :n, :moment, :journal, :subject, :body, :hash);

-- name: audit.all
-- read
-- Operator actions of all tenants, newest first.
select a.id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from tape.audit a where a.id < :before order by a.id desc limit :limit;

-- name: audit.head
-- unfenced: the tenant's next entry; writers queue here until the previous entry is committed
-- writes: audit_heads
insert into tape.audit_heads(tenant, n, hash) values (:tenant, 1, '')
on conflict(tenant) do update set n = audit_heads.n + 1
returning n, hash, tape.now_ms() as at;

-- name: audit.page
-- read
-- Operator actions of one tenant, newest first, by the tenant's own numbers: those of the table count all tenants.
select a.n as id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from tape.audit a
where a.tenant = :tenant and a.n < :before
order by a.n desc limit :limit;

-- name: audit.seal
-- unfenced: with the row of audit.head locked
-- writes: audit_heads
update tape.audit_heads set hash = :hash where tenant = :tenant;

-- name: audit.subject
-- read
select coalesce((select u.id from tape.runs u where u.journal = l.run), (select n.name from tape.names n where n.journal = l.journal)) as subject
from tape.leases l where l.journal = :journal;

-- name: meta.get
-- read
select store_id, channel, epoch, cast(token_floor as text) as token_floor, timeline, tape.timeline() as timeline_now,
  tape.now_ms() as at, current_setting('server_version_num')::bigint as server_version,
  current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit,
  current_setting('full_page_writes') as full_page_writes, pg_is_in_recovery() as standby
from tape.meta;

-- name: meta.promoted
-- unfenced: as meta.restored, but only for the first process that sees the new timeline
-- writes: meta
update tape.meta set epoch = epoch + p.step, token_floor = (epoch + p.step) << 40,
  next_journal = next_journal + 4294967296 * p.step,
  timeline = tape.timeline(), feed_offset = feed_offset + (
    select case when r.last < pg_snapshot_xmax(s.now)::text::bigint + meta.feed_offset then 0
      else r.last + 1 - pg_snapshot_xmin(s.now)::text::bigint - meta.feed_offset end
    from (select coalesce(max(stamp), 0) as last from tape.records) r, (select pg_current_snapshot() as now) s)
from (select greatest(1, coalesce(('x' || tape.timeline())::bit(32)::bigint - ('x' || m.timeline)::bit(32)::bigint, 1)) as step
  from tape.meta m) p
where timeline is distinct from tape.timeline()
returning epoch;

-- name: meta.restored
-- unfenced: the store epoch is raised, so that no token is issued twice. 2^40 tokens per epoch, 2^23 epochs.
-- writes: meta
-- Raised by the number of timelines that have passed: one unknown to this server may have raised it and issued tokens,
-- too, and be lost with all of that. Journal numbers jump, because processes may still have unused ones. The feed's
-- offset is raised only if the cluster counts its transactions from lower numbers than the stamps it holds: raised
-- under open transactions, it would let the feed pass them.
update tape.meta set epoch = epoch + p.step, token_floor = (epoch + p.step) << 40,
  next_journal = next_journal + 4294967296 * p.step,
  timeline = tape.timeline(), feed_offset = feed_offset + (
    select case when r.last < pg_snapshot_xmax(s.now)::text::bigint + meta.feed_offset then 0
      else r.last + 1 - pg_snapshot_xmin(s.now)::text::bigint - meta.feed_offset end
    from (select coalesce(max(stamp), 0) as last from tape.records) r, (select pg_current_snapshot() as now) s)
from (select greatest(1, coalesce(('x' || tape.timeline())::bit(32)::bigint - ('x' || m.timeline)::bit(32)::bigint, 1)) as step
  from tape.meta m) p
returning epoch;

-- name: migrations.add
-- unfenced: under the lock of the migrating process
-- writes: migrations
insert into tape.migrations(number, name, checksum) values (:number, :name, :checksum);

-- name: migrations.create
-- unfenced: the table of migrations itself, created under the lock of the migrating process
create table if not exists tape.migrations(number bigint primary key, name text not null, checksum text not null);

-- name: migrations.list
-- read
select number, name, checksum from tape.migrations order by number;

-- name: process.drop
-- unfenced: the process itself announces its end
-- writes: processes
delete from tape.processes where tenant = :tenant and owner = :owner;

-- name: process.list
-- read
select p.tenant, p.owner, p.label, p.at, p.body, tape.now_ms() - p.at as ago_ms from tape.processes p
where p.tenant = :tenant and p.at >= (select tape.now_ms()) - :older_ms order by p.label, p.owner limit :limit;

-- name: process.purge
-- unfenced: a process that has been silent this long is gone
-- writes: processes
delete from tape.processes where at < (select tape.now_ms()) - :older_ms;

-- name: process.put
-- unfenced: a process report, for operators; only the process itself writes its row
-- writes: processes
insert into tape.processes(tenant, owner, label, at, body) values (:tenant, :owner, :label, tape.now_ms(), :body)
on conflict(tenant, owner) do update set label = excluded.label, at = excluded.at, body = excluded.body;

-- name: idempotency.store
-- unfenced: by the transaction that claimed the key
-- writes: idempotency_keys
update tape.idempotency_keys set response = :response where tenant = :tenant and key = :key;

-- name: idempotency.claim
-- unfenced: the key is the fence: the call that inserts its row is performed; others wait here until it is decided
-- writes: idempotency_keys
insert into tape.idempotency_keys(tenant, key, hash, response, at) values (:tenant, :key, :hash, '', tape.now_ms()) on conflict do nothing;

-- name: idempotency.drop
-- unfenced: by the transaction that claimed the key: its call was rejected, so the key is free again
-- writes: idempotency_keys
delete from tape.idempotency_keys where tenant = :tenant and key = :key;

-- name: idempotency.find
-- read
select hash, response from tape.idempotency_keys where tenant = :tenant and key = :key;

-- name: idempotency.purge
-- unfenced: no client repeats a call that is this old
-- writes: idempotency_keys
-- Only a few more than the limit: the oldest, and those of the same moment as the last of them.
delete from tape.idempotency_keys where at < (select tape.now_ms()) - :older_ms
  and at <= coalesce((select r.at from tape.idempotency_keys r order by r.at limit 1 offset :limit), 9223372036854775807);

-- name: store.protection
-- read
-- What the fence depends on. Without one of these indexes as we created it, a stale write commits after a takeover, a
-- journal forks, or an id is given twice. An unlogged table is empty after a crash. A deferrable or half-built index
-- protects as little as none. Also the privileges that this role lacks: otherwise they would fail in the middle of the
-- work.
select
  array_to_string(array(
    select w.index from (values
      ('leases_fence', 'tape.leases', '{journal,token}'), ('leases_pkey', 'tape.leases', '{journal}'),
      ('records_head', 'tape.records', '{journal,seq}'), ('runs_id', 'tape.runs', '{tenant,id}'),
      ('runs_pkey', 'tape.runs', '{journal}'), ('business_keys_pkey', 'tape.business_keys', '{tenant,scope,business_key}'),
      ('effects_pkey', 'tape.effects', '{run,pos,sub}')
    ) w(index, of, keys)
    where not exists (
      select 1 from pg_catalog.pg_index x join pg_catalog.pg_class c on c.oid = x.indexrelid
      where x.indrelid = to_regclass(w.of) and c.relname = w.index and x.indisunique and x.indisvalid and x.indisready
        and x.indislive and x.indimmediate and x.indpred is null and x.indexprs is null
        and array(select a.attname::text from unnest(x.indkey[0:x.indnkeyatts - 1]) with ordinality k(n, at)
          join pg_catalog.pg_attribute a on a.attrelid = x.indrelid and a.attnum = k.n order by k.at) = w.keys::text[])
  ), ', ') as unprotected,
  array_to_string(array(
    select c.relname || case c.relpersistence when 'u' then ' (unlogged)' else ' (temporary)' end from pg_catalog.pg_class c
    where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r' and c.relpersistence <> 'p' order by c.relname
  ), ', ') as volatile,
  array_to_string(array(
    select c.relname::text from pg_catalog.pg_class c
    where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r' and c.relname <> 'migrations'
      and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert')
        and has_table_privilege(c.oid, 'update') and has_table_privilege(c.oid, 'delete')) order by c.relname
  ), ', ') as forbidden,
  array_to_string(array(
    select p.proname::text from pg_catalog.pg_proc p
    where p.pronamespace = to_regnamespace(:schema) and not has_function_privilege(p.oid, 'execute') order by p.proname
  ), ', ') as uncallable,
  current_user::text as role;

-- name: store.record
-- unfenced: the store's own journal, number 1; the row lock on meta queues its writers
-- writes: records
with m as materialized (select 1 from tape.meta for update)
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select 1, p.seq + 1, 0, greatest(tape.stamp(), p.stamp), tape.now_ms(), :kind, :body
from m cross join lateral (select seq, stamp from tape.records where journal = 1 order by seq desc limit 1) p;

-- name: store.records
-- unfenced: the store's own journal, number 1; the row lock on meta queues its writers
-- writes: records
with m as materialized (select 1 from tape.meta for update)
insert into tape.records(journal, seq, token, stamp, at, kind, body)
select 1, p.seq + b.n, 0, greatest(tape.stamp(), p.stamp), tape.now_ms(), :kind, b.body
from m cross join lateral (select seq, stamp from tape.records where journal = 1 order by seq desc limit 1) p
cross join json_array_elements_text(:bodies::json) with ordinality b(body, n);

-- name: store.standbys
-- read
-- How many standbys follow this server, and whether a commit waits for one of them.
select current_setting('synchronous_standby_names') as names, (select count(*) from pg_catalog.pg_stat_replication) as standbys;

-- name: token.get
-- read
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at from tape.tokens where id = :id;

-- name: token.list
-- read
-- Oldest first; a page continues after the token :above of the same list. After any other token there is nothing.
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at
  from tape.tokens where (:tenant::text is null or tenant = :tenant)
  and (:above = '' or (created_at, id) > (select t.created_at, t.id from tape.tokens t where t.id = :above
    and (:tenant::text is null or t.tenant = :tenant)))
order by created_at, id limit :limit;

-- name: token.put
-- unfenced: unique by its random id
-- writes: tokens
insert into tape.tokens(id, tenant, name, role, hash, created_at, expires_at)
select :id, :tenant, :name, :role, :hash, t.at, t.at + :delay_ms from (select tape.now_ms() as at) t
on conflict do nothing returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at;

-- name: token.revoke
-- unfenced: only the first revocation counts
-- writes: tokens
update tape.tokens set revoked_at = tape.now_ms() where id = :id and (:tenant::text is null or tenant = :tenant) and revoked_at is null
returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at;

-- name: token.touch
-- unfenced: for operators who search for unused tokens. Not at every call: once a minute is enough.
-- writes: tokens
update tape.tokens set used_at = tape.now_ms() where id = :id and (used_at is null or used_at < tape.now_ms() - 60000);

-- macro: $due
-- The work of one tenant that is due, by reactor. Each count stops at :cap. Backlog by backlog, as the agenda: rows that
-- are due later are not read. A holder whose lease has expired is work, too, and so are the free slots of queues.
with recursive q(reactor, workflow) as (
  select r.reactor, w.workflow from (values ('recovery'), ('reconciler'), ('outbox'), ('compensation')
    union all select 'recovery@' || b.build from tape.builds b where b.tenant = :tenant) r(reactor)
  cross join lateral (select l.workflow from tape.leases l where l.next_reactor = r.reactor and l.tenant = :tenant
    order by l.workflow limit 1) w
  union all
  select q.reactor, w.workflow from q cross join lateral (select l.workflow from tape.leases l
    where l.next_reactor = q.reactor and l.tenant = :tenant and l.workflow > q.workflow order by l.workflow limit 1) w)
select d.reactor, least(sum(d.n)::bigint, :cap::bigint) as n, max(d.late_ms) as late_ms from (
  select split_part(b.reactor, '@', 1) as reactor, w.n, w.late_ms from (select q.reactor, q.workflow from q limit 4000) b
  cross join lateral (select count(*) as n, tape.now_ms() - min(x.due_at) as late_ms from (
    select l.due_at from tape.leases l where l.next_reactor = b.reactor and l.tenant = :tenant and l.workflow = b.workflow
      and l.due_at <= (select tape.now_ms()) and not l.paused order by l.due_at limit :cap::bigint) x) w
  union all
  select h.reactor, 1, greatest(0, tape.now_ms() - h.expires_at) from (select l.expires_at,
      case when l.kind = 'run' then 'recovery' when l.reactor = 'compensation' then l.reactor else 'reconciler' end as reactor
    from tape.leases l where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant
      and (l.expires_at <= (select tape.now_ms()) or l.doomed) limit :cap::bigint) h
  union all
  select 'timers', count(*), tape.now_ms() - min(t.due_at) from (select t.due_at from tape.timers t
    where t.status = 'SET' and t.tenant = :tenant and t.due_at <= (select tape.now_ms()) order by t.due_at limit :cap::bigint) t
  union all
  select 'timers', count(*), tape.now_ms() - min(s.next_at) from (select s.next_at from tape.schedules s
    where s.next_at is not null and not s.paused and s.tenant = :tenant and s.next_at <= (select tape.now_ms())
    order by s.next_at limit :cap::bigint) s
  union all
  select 'recovery', least(:cap::bigint, coalesce(q.concurrency - (select coalesce(sum(p.running), 0) from tape.queue_partitions p
      where p.queue = q.id and p.busy), :cap::bigint),
    (select coalesce(sum(least(p.waiting, coalesce(p.cap - p.running, p.waiting))), 0)
      from (select p.waiting, p.cap, p.running from tape.queue_partitions p where p.queue = q.id and p.ready limit :cap::bigint) p)), 0
  from tape.queues q where q.tenant = :tenant and q.pause is null
    and coalesce((q.tat - (q.rate_burst - 1) * q.rate_us + 999) / 1000 <= tape.now_ms(), true)) d
where d.n > 0 group by d.reactor;

-- name: work.due
-- read
select d.reactor, d.n, d.late_ms from ($due) d;

-- name: census
-- read
-- What operators watch, in one statement. No count reads more than :cap rows that match. WAITING is missing: it is the
-- absence of a holder, a reactor and a slot, and counting it would read every run. Leases of runs that are ending,
-- compensating or stuck are subtracted: these runs are few, and looking up the phase of all others would take longer.
with e as materialized (
  select r.phase, l.owner is not null as held, l.owner is null and l.next_reactor is not null as waits
  from (values ('ENDING'), ('COMPENSATING'), ('STUCK')) p(phase)
  cross join lateral (select r.journal, r.phase from tape.runs r where r.tenant = :tenant and r.phase = p.phase
    and r.phase not in ('LIVE', 'COMPLETED') limit :cap::bigint) r
  cross join lateral (select l.owner, l.next_reactor from tape.leases l where l.journal = r.journal limit 1) l)
select 'due' as what, d.reactor as label, d.n, d.late_ms as ms from ($due) d
union all
select 'runs', p.phase, (select count(*) from e where e.phase = p.phase), null
from (values ('ENDING'), ('COMPENSATING'), ('STUCK')) p(phase)
union all
select 'runs', 'RUNNING', greatest(0, (select count(*) from (select 1 from tape.leases l
  where l.owner is not null and l.kind <> 'name' and l.kind || '' = 'run' and l.tenant = :tenant limit :cap::bigint) x)
  - (select count(*) from e where e.held)), null
union all
select 'runs', 'RUNNABLE', greatest(0, (select count(*) from (select 1 from tape.leases l
  where l.next_reactor = 'recovery' and l.owner is null and l.kind || '' = 'run' and l.tenant = :tenant limit :cap::bigint) x)
  + (select count(*) from (select 1 from tape.leases l
    where l.build is not null and l.next_reactor is not null and l.owner is null and l.tenant = :tenant limit :cap::bigint) x)
  - (select count(*) from e where e.waits)), null
union all
select 'runs', 'QUEUED', (select count(*) from (select 1 from tape.queues q
  cross join lateral (select 1 from tape.queue_slots s where s.queue = q.id and s.state = 'QUEUED' limit :cap::bigint) s
  where q.tenant = :tenant limit :cap::bigint) x), null
union all
select x.role, w.status, count(*), tape.now_ms() - min(x.changed_at) from (values ('UNKNOWN'), ('STUCK')) w(status)
cross join lateral (select e.role, e.changed_at from tape.effects e where e.tenant = :tenant and e.status = w.status
  and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED') order by e.changed_at limit :cap::bigint) x
group by x.role, w.status
union all
select 'held', x.kind, count(*), null from (select l.kind from tape.leases l
  where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant limit :cap::bigint) x group by x.kind
union all
select 'held', 'name', (select count(*) from (select 1 from tape.names n
  cross join lateral (select 1 from tape.leases l where l.journal = n.journal and l.owner is not null limit 1) l
  where n.tenant = :tenant limit :cap::bigint) x), null
union all
select 'feed', 'blocked', 1, (select (extract(epoch from clock_timestamp() - a.xact_start) * 1000)::bigint from pg_stat_activity a
  where a.backend_xid is not null and a.backend_xid::text = (tape.feed_holder() % 4294967296)::text limit 1);

-- name: audit.add
-- unfenced: with the row of audit.head locked
-- writes: audit
insert into audit(tenant, n, at, journal, subject, body, hash) values (:tenant, :n, :moment, :journal, :subject, :body, :hash);

-- name: audit.all
-- read
-- Operator actions of all tenants, newest first.
select a.id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from audit a where a.id < :before order by a.id desc limit :limit;

-- name: audit.head
-- unfenced: the tenant's next entry; writers queue here until the previous entry is committed
-- writes: audit_heads
insert into audit_heads(tenant, n, hash) values (:tenant, 1, '')
on conflict(tenant) do update set n = audit_heads.n + 1
returning n, hash, :at as at;

-- name: audit.page
-- read
-- Operator actions of one tenant, newest first, by the tenant's own numbers: those of the table count all tenants.
select a.n as id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from audit a
where a.tenant = :tenant and a.n < :before
order by a.n desc limit :limit;

-- name: audit.seal
-- unfenced: with the row of audit.head locked
-- writes: audit_heads
update audit_heads set hash = :hash where tenant = :tenant;

-- name: audit.subject
-- read
select coalesce((select u.id from runs u where u.journal = l.run), (select n.name from names n where n.journal = l.journal)) as subject
from leases l where l.journal = :journal;

-- name: meta.anchor
-- unfenced: the first process that needs it records the difference between the two clocks; all others use it
-- writes: meta
update meta set anchor = :anchor where anchor is null;

-- name: meta.boot
-- unfenced: remembers the boot of the lease clock; returns a row only to the process that sees a new boot
-- writes: meta
update meta set boot = :boot, anchor = :anchor where boot <> :boot returning boot;

-- name: meta.file
-- unfenced: which file this is, as seen by the process that opens it
-- writes: meta
update meta set file = :file;

-- name: meta.get
-- read
select store_id, epoch, cast(token_floor as text) as token_floor, boot, anchor, file, :at as at from meta;

-- name: meta.restored
-- unfenced: the store epoch is raised, so that no token is issued twice. 2^40 tokens per epoch, 2^23 epochs.
-- writes: meta
update meta set epoch = epoch + 1, token_floor = (epoch + 1) << 40 returning epoch;

-- name: migrations.add
-- unfenced: under the lock of the migrating process
-- writes: migrations
insert into migrations(number, name, checksum) values (:number, :name, :checksum);

-- name: migrations.create
-- unfenced: the table of migrations itself, created under the lock of the migrating process
create table if not exists migrations(number integer primary key, name text not null, checksum text not null) strict;

-- name: migrations.list
-- read
select number, name, checksum from migrations order by number;

-- name: migrations.size
-- read
-- Estimates the number of runs by the number of the newest, which costs nothing to find.
select coalesce(max(journal), 0) as runs from runs;

-- name: process.drop
-- unfenced: the process itself announces its end
-- writes: processes
delete from processes where tenant = :tenant and owner = :owner;

-- name: process.list
-- read
select p.tenant, p.owner, p.label, p.at, p.body, :at - p.at as ago_ms from processes p
where p.tenant = :tenant and p.at >= :at - :older_ms order by p.label, p.owner limit :limit;

-- name: process.purge
-- unfenced: a process that has been silent this long is gone
-- writes: processes
delete from processes where at < :at - :older_ms;

-- name: process.put
-- unfenced: a process report, for operators; only the process itself writes its row
-- writes: processes
insert into processes(tenant, owner, label, at, body) values (:tenant, :owner, :label, :at, :body)
on conflict(tenant, owner) do update set label = excluded.label, at = excluded.at, body = excluded.body;

-- name: idempotency.store
-- unfenced: by the transaction that claimed the key
-- writes: idempotency_keys
update idempotency_keys set response = :response where tenant = :tenant and key = :key;

-- name: idempotency.claim
-- unfenced: the key is the fence: the call that inserts its row is performed; others wait here until it is decided
-- writes: idempotency_keys
insert into idempotency_keys(tenant, key, hash, response, at) values (:tenant, :key, :hash, '', :at) on conflict do nothing;

-- name: idempotency.drop
-- unfenced: by the transaction that claimed the key: its call was rejected, so the key is free again
-- writes: idempotency_keys
delete from idempotency_keys where tenant = :tenant and key = :key;

-- name: idempotency.find
-- read
select hash, response from idempotency_keys where tenant = :tenant and key = :key;

-- name: idempotency.purge
-- unfenced: no client repeats a call that is this old
-- writes: idempotency_keys
-- Only a few more than the limit: the oldest, and those of the same moment as the last of them.
delete from idempotency_keys where at < :at - :older_ms
  and at <= coalesce((select r.at from idempotency_keys r order by r.at limit 1 offset :limit), 9223372036854775807);

-- name: store.record
-- unfenced: the store's own journal, number 1
-- writes: records
insert into records(journal, seq, token, at, kind, body)
select 1, max(seq) + 1, 0, :at, :kind, :body from records where journal = 1;

-- name: store.records
-- unfenced: the store's own journal, number 1
-- writes: records
insert into records(journal, seq, token, at, kind, body)
select 1, (select max(r.seq) from records r where r.journal = 1) + 1 + i.key, 0, :at, :kind, i.value from json_each(:bodies) i;

-- name: token.get
-- read
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at from tokens where id = :id;

-- name: token.list
-- read
-- Oldest first; a page continues after the token :above of the same list. After any other token there is nothing.
select id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at
  from tokens where (:tenant is null or tenant = :tenant)
  and (:above = '' or (created_at, id) > (select t.created_at, t.id from tokens t where t.id = :above
    and (:tenant is null or t.tenant = :tenant)))
order by created_at, id limit :limit;

-- name: token.put
-- unfenced: unique by its random id
-- writes: tokens
insert into tokens(id, tenant, name, role, hash, created_at, expires_at)
values (:id, :tenant, :name, :role, :hash, :at, :at + :delay_ms) on conflict do nothing returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at;

-- name: token.revoke
-- unfenced: only the first revocation counts
-- writes: tokens
update tokens set revoked_at = :at where id = :id and (:tenant is null or tenant = :tenant) and revoked_at is null
returning id, tenant, name, role, hash, created_at, expires_at, revoked_at, used_at;

-- name: token.touch
-- unfenced: for operators who search for unused tokens. Not at every call: once a minute is enough.
-- writes: tokens
update tokens set used_at = :at where id = :id and (used_at is null or used_at < :at - 60000);

-- macro: $due
-- The work of one tenant that is due, by reactor. Each count stops at :cap. Backlog by backlog, as the agenda: rows that
-- are due later are not read. A holder whose lease has expired is work, too, and so are the free slots of queues.
with recursive q(reactor, journal) as (
  select r.reactor, (select l.journal from leases l where l.next_reactor = r.reactor and l.tenant = :tenant order by l.workflow limit 1)
  from (select value as reactor from json_each('["recovery", "reconciler", "outbox", "compensation"]')
    union all select 'recovery@' || b.build from builds b where b.tenant = :tenant) r
  union all
  select q.reactor, (select l.journal from leases l where l.next_reactor = q.reactor and l.tenant = :tenant
    and l.workflow > x.workflow order by l.workflow limit 1)
  from q cross join leases x on x.journal = q.journal
  limit 4000)
select d.reactor, min(sum(d.n), :cap) as n, max(d.late_ms) as late_ms from (
  select case when q.reactor glob 'recovery@*' then 'recovery' else q.reactor end as reactor,
    (select count(*) from (select 1 from leases l where l.next_reactor = q.reactor and l.tenant = :tenant and l.workflow = x.workflow
      and l.due_at <= :now and l.paused = 0 limit :cap)) as n,
    :now - (select l.due_at from leases l where l.next_reactor = q.reactor and l.tenant = :tenant and l.workflow = x.workflow
      and l.due_at <= :now and l.paused = 0 order by l.due_at limit 1) as late_ms
  from q cross join leases x on x.journal = q.journal
  union all
  select h.reactor, 1, max(0, :now - h.expires_at) from (select l.expires_at,
      case when l.kind = 'run' then 'recovery' when l.reactor = 'compensation' then l.reactor else 'reconciler' end as reactor
    from leases l indexed by leases_held where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant
      and (l.expires_at <= :now or l.doomed = 1) limit :cap) h
  union all
  select 'timers', 1, t.late_ms from (select :at - due_at as late_ms from timers
    where status = 'SET' and tenant = :tenant and steady = 0 and due_at <= :at order by due_at limit :cap) t
  union all
  select 'timers', 1, t.late_ms from (select :steady - due_at as late_ms from timers
    where status = 'SET' and tenant = :tenant and steady = 1 and due_at <= :steady order by due_at limit :cap) t
  union all
  select 'timers', 1, s.late_ms from (select :at - next_at as late_ms from schedules
    where next_at is not null and paused = 0 and tenant = :tenant and next_at <= :at order by next_at limit :cap) s
  union all
  select 'recovery', min(:cap, coalesce(q.concurrency - (select coalesce(sum(p.running), 0) from queue_partitions p
      where p.queue = q.id and p.busy = 1), :cap),
    (select coalesce(sum(min(p.waiting, coalesce(p.cap - p.running, p.waiting))), 0)
      from (select p.waiting, p.cap, p.running from queue_partitions p where p.queue = q.id and p.ready = 1 limit :cap) p)), 0
  from queues q where q.tenant = :tenant and q.pause is null
    and coalesce((q.tat - (q.rate_burst - 1) * q.rate_us + 999) / 1000 <= :steady, 1)) d
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
  from runs r cross join leases l on l.journal = r.journal
  where r.tenant = :tenant and r.phase in ('ENDING', 'COMPENSATING', 'STUCK') and r.phase not in ('LIVE', 'COMPLETED') limit 3 * :cap)
select 'due' as what, d.reactor as label, d.n, d.late_ms as ms from ($due) d
union all
select 'runs', p.value, (select min(count(*), :cap) from e where e.phase = p.value), null
from json_each('["ENDING", "COMPENSATING", "STUCK"]') p
union all
select 'runs', 'RUNNING', max(0, (select count(*) from (select 1 from leases l indexed by leases_held
  where l.owner is not null and l.kind <> 'name' and l.kind = 'run' and l.tenant = :tenant limit :cap))
  - (select count(*) from e where e.held)), null
union all
select 'runs', 'RUNNABLE', max(0, (select count(*) from (select 1 from leases l indexed by leases_recovery
  where l.next_reactor = 'recovery' and l.owner is null and l.kind = 'run' and l.tenant = :tenant limit :cap))
  + (select count(*) from (select 1 from leases l indexed by leases_pinned
    where l.build is not null and l.next_reactor is not null and l.owner is null and l.tenant = :tenant limit :cap))
  - (select count(*) from e where e.waits)), null
union all
select 'runs', 'QUEUED', (select count(*) from (select 1 from queues q cross join queue_slots s on s.queue = q.id and s.state = 'QUEUED'
  where q.tenant = :tenant limit :cap)), null
union all
select x.role, 'UNKNOWN', count(*), :at - min(x.changed_at) from (select e.role, e.changed_at from effects e indexed by effects_open
  where e.tenant = :tenant and e.status = 'UNKNOWN' and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED')
  order by e.changed_at limit :cap) x group by x.role
union all
select x.role, 'STUCK', count(*), :at - min(x.changed_at) from (select e.role, e.changed_at from effects e indexed by effects_open
  where e.tenant = :tenant and e.status = 'STUCK' and e.status in ('PENDING', 'DISPATCHED', 'UNKNOWN', 'STUCK', 'COMMITTED')
  order by e.changed_at limit :cap) x group by x.role
union all
select 'held', x.kind, count(*), null from (select l.kind from leases l indexed by leases_held
  where l.owner is not null and l.kind <> 'name' and l.tenant = :tenant limit :cap) x group by x.kind
union all
select 'held', 'name', (select count(*) from (select 1 from names n cross join leases l on l.journal = n.journal
  where n.tenant = :tenant and l.owner is not null limit :cap)), null;

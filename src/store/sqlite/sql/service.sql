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

-- name: audit.add
-- unfenced: with the row of audit.head locked
-- writes: audit
insert into audit(tenant, n, `at`, journal, subject, body, `hash`) values (:tenant, :n, :moment, :journal, :subject, :body, :hash);

-- name: audit.all
-- read
-- Operator actions of all tenants, newest first; those of one millisecond in the order of their tenants. A page continues
-- after the entry :n of the tenant :above, which was written at :before.
select a.n as id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from audit a
where a.at < :before or (a.at = :before and (a.tenant > :above or (a.tenant = :above and a.n < :n)))
order by a.at desc, a.tenant, a.n desc limit :limit;

-- name: audit.head
-- unfenced: the tenant's next entry; writers queue here until the previous entry is committed
-- writes: audit_heads
insert or update into audit_heads(tenant, n, `hash`)
select x.tenant, coalesce(v.n, 0) + 1, coalesce(v.hash, '') from (select :tenant as tenant) x left join audit_heads v on v.tenant = x.tenant
then return n, `hash`, :at as `at`;

-- name: audit.page
-- read
-- Operator actions of one tenant, newest first, by the tenant's own numbers.
select a.n as id, a.tenant, a.n, a.at, a.journal, a.subject, a.body, a.hash from audit a
where a.tenant = :tenant and a.n < :before
order by a.n desc limit :limit;

-- name: audit.seal
-- unfenced: with the row of audit.head locked
-- writes: audit_heads
update audit_heads set `hash` = :hash where tenant = :tenant;

-- name: audit.subject
-- read
select coalesce((select u.id from runs u where u.journal = l.run), (select n.name from names@{force_index=names_journal} n where n.journal = l.journal)) as subject
from leases l where l.journal = :journal;

-- name: meta.create
-- unfenced: the first process that opens the database
-- writes: meta
insert or ignore into meta(one, store_id, epoch, token_floor, next_journal, cursor_key, secret)
values (true, :store_id, 0, 0, 2, :cursor_key, :secret);

-- name: meta.get
-- read
select store_id, epoch, cast(token_floor as string) as token_floor, :at as `at` from meta where one;

-- name: meta.restored
-- unfenced: the store epoch is raised, so that no token is issued twice. 2^40 tokens per epoch, 2^23 epochs.
-- writes: meta
update meta set epoch = epoch + 1, token_floor = (epoch + 1) << 40 where one then return epoch;

-- name: migrations.add
-- unfenced: repeated by every process that has run the statements of the migration, which may be repeated
-- writes: migrations
insert or ignore into migrations(number, name, checksum) values (:number, :name, :checksum);

-- name: migrations.list
-- read
select number, name, checksum from migrations order by number;

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
delete from processes where `at` < :at - :older_ms;

-- name: process.put
-- unfenced: a process report, for operators; only the process itself writes its row
-- writes: processes
insert or update into processes(tenant, owner, label, `at`, body) values (:tenant, :owner, :label, :at, :body);

-- name: idempotency.store
-- unfenced: by the transaction that claimed the key
-- writes: idempotency_keys
update idempotency_keys set response = :response where tenant = :tenant and key = :key;

-- name: idempotency.claim
-- unfenced: the key is the fence: the call that inserts its row is performed; others wait here until it is decided
-- writes: idempotency_keys
insert or ignore into idempotency_keys(tenant, key, `hash`, response, `at`) values (:tenant, :key, :hash, b'', :at);

-- name: idempotency.drop
-- unfenced: by the transaction that claimed the key: its call was rejected, so the key is free again
-- writes: idempotency_keys
delete from idempotency_keys where tenant = :tenant and key = :key;

-- name: idempotency.find
-- read
select k.hash, k.response from idempotency_keys k where k.tenant = :tenant and k.key = :key;

-- name: idempotency.purge
-- unfenced: no client repeats a call that is this old
-- writes: idempotency_keys
delete from idempotency_keys k where struct(k.tenant, k.key) in (
  select struct(x.tenant, x.key) from (select r.tenant, r.key from idempotency_keys r where r.at < :at - :older_ms order by r.at limit :limit) x);

-- name: store.record
-- unfenced: the store's own journal, number 1
-- writes: records
-- The head is read by journal.head; the record is a mutation, as note.create.
insert into records(journal, seq, token, `at`, kind, body, committed)
values ($store_journal, :seq, 0, :at, :kind, :body, pending_commit_timestamp());

-- name: store.records
-- unfenced: the store's own journal, number 1
-- writes: records
-- One mutation for each body, as store.record.
insert into records(journal, seq, token, `at`, kind, body, committed)
values ($store_journal, :seq, 0, :at, :kind, :body, pending_commit_timestamp());

-- name: time
-- read
-- The database's clock, for a record before which no statement of its transaction has returned it.
select :now as now;

-- name: token.get
-- read
select t.id, t.tenant, t.name, t.role, t.hash, t.created_at, t.expires_at, t.revoked_at, t.used_at from tokens t where t.id = :id;

-- name: token.list
-- read
-- Oldest first; a page continues after the token :above of the same list. After any other token there is nothing.
select t.id, t.tenant, t.name, t.role, t.hash, t.created_at, t.expires_at, t.revoked_at, t.used_at
from tokens t where (:tenant is null or t.tenant = :tenant)
  and (:above = '' or exists (select 1 from tokens o where o.id = :above and (:tenant is null or o.tenant = :tenant)
    and (t.created_at > o.created_at or (t.created_at = o.created_at and t.id > o.id))))
order by t.created_at, t.id limit :limit;

-- name: token.put
-- unfenced: unique by its random id
-- writes: tokens
insert or ignore into tokens(id, tenant, name, role, `hash`, created_at, expires_at)
values (:id, :tenant, :name, :role, :hash, :at, :at + :delay_ms)
then return id, tenant, name, role, `hash`, created_at, expires_at, revoked_at, used_at;

-- name: token.revoke
-- unfenced: only the first revocation counts
-- writes: tokens
update tokens set revoked_at = :at where id = :id and (:tenant is null or tenant = :tenant) and revoked_at is null
then return id, tenant, name, role, `hash`, created_at, expires_at, revoked_at, used_at;

-- name: token.touch
-- unfenced: for operators who search for unused tokens. Not at every call: once a minute is enough.
-- writes: tokens
update tokens set used_at = :at where id = :id and (used_at is null or used_at < :at - 60000);

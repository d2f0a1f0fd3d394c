-- name: create
-- unfenced: an empty table, created once by the owner of the database
create table if not exists tape_guards(scope text primary key, token integer not null) strict, without rowid;

-- name: raise
-- unfenced: this is the guard; the user's transaction is the only one that writes until it ends
-- writes: tape_guards
insert into tape_guards(scope, token) values (:scope, :token)
on conflict (scope) do update set token = max(token, excluded.token)
returning cast(token as text) as token;

-- name: row
-- read
-- The store's own fence in the user's transaction. A write transaction excludes every takeover. A transaction that has
-- only read so far cannot start to write once another connection has written (SQLITE_BUSY_SNAPSHOT).
select 1 as held from leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and l.doomed = 0;

-- name: create
-- unfenced: an empty table, created once by the owner of the database
create table if not exists tape_guards(scope text primary key, token bigint not null);

-- name: mark
-- read
select current_setting('tape.guarded', true) as mark;

-- name: raise
-- unfenced: this is the guard; its row stays locked until the user's transaction ends, so tokens pass one after the other
-- writes: tape_guards
insert into tape_guards as g (scope, token) values (:scope, :token)
on conflict (scope) do update set token = greatest(g.token, excluded.token)
returning cast(g.token as text) as token, set_config('tape.guarded', :mark, true) as mark;

-- name: row
-- read
-- The store's own fence (`fence` in src/store/postgres/sql/leases.sql) in the user's transaction. A takeover changes the
-- token and so waits until that transaction ends; heartbeats pass. On a promoted server nothing passes until the epoch is
-- raised. Two settings last as long as the transaction: a mark, by which the guard detects whether there is one, and a
-- bound, because a process that is paused here would otherwise block its successor for as long as it is paused.
select set_config('tape.guarded', :mark, true) as mark,
  set_config('idle_in_transaction_session_timeout', (
    select case when cast(s.setting as int) between 1 and :bound_ms::int then s.setting else cast(:bound_ms::int as text) end
    from pg_catalog.pg_settings s where s.name = 'idle_in_transaction_session_timeout'
  ), true) as bound
from tape.leases l
where l.journal = :journal and l.tenant = :tenant and l.token = :token and l.nonce = :nonce and not l.doomed
  and (select tape.on_timeline(m.timeline) from tape.meta m) for key share of l;

-- macro: %server%
-- The database and the start of its server: a copy of the store elsewhere has the same store id, but not this.
(select d.oid::text || ' ' || extract(epoch from pg_postmaster_start_time())::text
  from pg_catalog.pg_database d where d.datname = current_database());

-- name: transaction.enter
-- read
-- The first statement in a transaction of the caller. Three settings last as long as the transaction: a mark, by which
-- its end is noticed and which the first call sets; a commit that is durable, as the store's own; and a bound on idleness, because a process that is
-- paused here would otherwise keep its locks for as long as it is paused.
select m.store_id, tape.on_timeline() as known, %server% as server,
  current_setting('transaction_read_only') as read_only,
  set_config('tape.transaction', coalesce(nullif(current_setting('tape.transaction', true), ''), :mark), true) as mark,
  set_config('synchronous_commit', case when current_setting('synchronous_commit') = 'off' then 'on'
    else current_setting('synchronous_commit') end, true) as durable,
  set_config('idle_in_transaction_session_timeout', (
    select case when cast(s.setting as int) between 1 and :bound_ms::int then s.setting else cast(:bound_ms::int as text) end
    from pg_catalog.pg_settings s where s.name = 'idle_in_transaction_session_timeout'
  ), true) as bound
from tape.meta m;

-- name: transaction.mark
-- read
-- The mark of the transaction on this connection; another one, or none, if that transaction is over.
select current_setting('tape.transaction', true) as mark;

-- name: transaction.server
-- read
-- The store and the server of the store's own connections, to be compared with the caller's.
select m.store_id, %server% as server from tape.meta m;

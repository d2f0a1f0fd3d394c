-- name: blockers
-- read
-- The transactions with a lock on these tables that a schema change has to wait for, oldest first.
select a.pid, a.application_name, a.usename as usename, a.state, extract(epoch from clock_timestamp() - a.xact_start)::int as seconds
from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.relation in (select c.oid from pg_catalog.pg_class c where c.relnamespace = to_regnamespace(:schema))
  and l.granted and a.pid <> pg_backend_pid()
order by a.xact_start limit 1;

-- name: edge
-- read
-- The last key of the next batch. `batched_table` and `batched_key` stand for those of the migration.
select max(k.key)::text as edge from (
  select b.batched_key as key from batched_table b where b.batched_key > :after::bigint order by b.batched_key limit :size::bigint
) k;

-- name: index
-- read
-- An index whose builder was killed exists and is not valid.
select x.indisvalid as valid from pg_catalog.pg_index x where x.indexrelid = to_regclass(:index);

-- name: lock
-- read
-- Tried, never waited for: a waiting statement holds a snapshot, and a concurrent index build waits for every earlier
-- snapshot. 7216503 is an arbitrary number, the same for every Tape.
select pg_try_advisory_lock(7216503, hashtext(:schema)) as mine;

-- name: lock.transaction
-- read
-- The same lock until the end of the transaction: the only kind available behind a pooler.
select pg_try_advisory_xact_lock(7216503, hashtext(:schema)) as mine;

-- name: progress
-- read
-- What a migration of any process is doing now: the phase of the index build, and what it waits for.
select a.pid, a.wait_event_type as waits, p.phase, p.blocks_done::float8 as blocks_done, p.blocks_total::float8 as blocks_total,
  p.tuples_done::float8 as tuples_done, p.tuples_total::float8 as tuples_total, p.lockers_done::int as lockers_done,
  p.lockers_total::int as lockers_total, nullif(p.current_locker_pid, 0)::int as locker, x.relname as index,
  array_to_string(pg_blocking_pids(a.pid), ', ') as blockers
from pg_catalog.pg_stat_activity a
left join pg_catalog.pg_stat_progress_create_index p on p.pid = a.pid
left join pg_catalog.pg_class x on x.oid = p.index_relid
where a.datname = current_database() and a.application_name = 'durable-tape migration' and a.state <> 'idle';

-- name: tables
-- read
-- The size of the tables as of the last VACUUM or ANALYZE; 0 for a table that was never analysed.
select c.relname as name, greatest(c.reltuples, 0)::float8 as rows, pg_catalog.pg_table_size(c.oid)::float8 as bytes
from pg_catalog.pg_class c where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r';

-- name: blockers
-- read
-- Who keeps a lock on these tables that a change of them has to wait for, the oldest first.
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
-- An index that was being built when its builder was killed is there and is not valid.
select x.indisvalid as valid from pg_catalog.pg_index x where x.indexrelid = to_regclass(:index);

-- name: lock
-- read
-- Tried, never waited for: who waits inside a statement holds a snapshot, and an index that is built concurrently waits for
-- every snapshot of before. 7216503 is any number, the same for every Tape.
select pg_try_advisory_lock(7216503, hashtext(:schema)) as mine;

-- name: lock.transaction
-- read
-- The same lock for as long as the transaction lasts: all that there is behind a pooler.
select pg_try_advisory_xact_lock(7216503, hashtext(:schema)) as mine;

-- name: progress
-- read
-- What a migration does at this moment, by whichever process: the phase of an index that is built, and for whom it waits.
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
-- How large the tables are, as the last VACUUM or ANALYZE saw it; a table that was never looked at says 0.
select c.relname as name, greatest(c.reltuples, 0)::float8 as rows, pg_catalog.pg_table_size(c.oid)::float8 as bytes
from pg_catalog.pg_class c where c.relnamespace = to_regnamespace(:schema) and c.relkind = 'r';

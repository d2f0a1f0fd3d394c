-- read
-- What a migration does at this moment, by whichever process: the phase of an index that is built, and for whom it waits.
select a.pid, a.wait_event_type as waits, p.phase, p.blocks_done::float8 as blocks_done, p.blocks_total::float8 as blocks_total,
  p.tuples_done::float8 as tuples_done, p.tuples_total::float8 as tuples_total, p.lockers_done::int as lockers_done,
  p.lockers_total::int as lockers_total, nullif(p.current_locker_pid, 0)::int as locker, x.relname as index,
  array_to_string(pg_blocking_pids(a.pid), ', ') as blockers
from pg_catalog.pg_stat_activity a
left join pg_catalog.pg_stat_progress_create_index p on p.pid = a.pid
left join pg_catalog.pg_class x on x.oid = p.index_relid
where a.datname = current_database() and a.application_name = 'durable-tape migration' and a.state <> 'idle'

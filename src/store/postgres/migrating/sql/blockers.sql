-- read
-- Who keeps a lock on these tables that a change of them has to wait for, the oldest first.
select a.pid, a.application_name, a.usename as usename, a.state, extract(epoch from clock_timestamp() - a.xact_start)::int as seconds
from pg_catalog.pg_locks l join pg_catalog.pg_stat_activity a on a.pid = l.pid
where l.relation in (select c.oid from pg_catalog.pg_class c where c.relnamespace = to_regnamespace(:schema))
  and l.granted and a.pid <> pg_backend_pid()
order by a.xact_start limit 1

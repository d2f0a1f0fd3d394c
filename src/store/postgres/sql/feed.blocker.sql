-- read
-- Who holds the feed back: the oldest transaction that has an xid, where we may see it.
select a.pid, a.usename as usename, a.application_name, a.state, extract(epoch from clock_timestamp() - a.xact_start)::bigint as seconds
from pg_stat_activity a
where a.backend_xid is not null and a.backend_xid::text = (pg_snapshot_xmin(pg_current_snapshot())::text::bigint % 4294967296)::text
limit 1

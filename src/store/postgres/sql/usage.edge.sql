-- read
-- How far the next look goes: whole transactions, none that could still be written to. See feed.page.
with w as materialized (
  select r.stamp from tape.records r
  where r.stamp > :after
    and r.stamp < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select feed_offset from tape.meta)
  order by r.stamp limit :limit)
select max(stamp) as edge, case when count(*) < :limit then max(stamp) end as last from w having count(*) > 0

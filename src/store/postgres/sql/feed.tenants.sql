-- read
-- Whose records lie behind a place of the feed, by their stamps: one look for all that follow it. The row without a tenant
-- has the last stamp that is finished (below the snapshot's xmin, as in feed.page) and the last that was looked through:
-- not that of the last record where a look was as long as one may be, because there may be more of that one.
with h as materialized (
  select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select feed_offset from tape.meta) as stamp),
n as materialized (
  select coalesce((select r.stamp from tape.records r where r.stamp < (select h.stamp from h)
    order by r.stamp desc limit 1), 0) as stamp),
w as materialized (
  select r.stamp, r.journal from tape.records r
  where r.stamp > :after and r.stamp < (select h.stamp from h) order by r.stamp limit :scan),
e as materialized (
  select case when (select count(*) from w) < :scan then n.stamp else (select max(w.stamp) from w) - 1 end as stamp from n)
select null as tenant, n.stamp as first, e.stamp as last from e cross join n
union all
select l.tenant, min(w.stamp), max(w.stamp) from w
  cross join lateral (select l.tenant from tape.leases l where l.journal = abs(w.journal) limit 1) l
where w.stamp <= (select e.stamp from e) group by l.tenant

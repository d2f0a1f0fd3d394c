-- read
-- Whose records lie behind a place of the feed, by their stamps: one look for all that follow it. The row without a tenant
-- says up to which stamp everything is finished (below the snapshot's xmin, as in feed.page) and up to which it was looked
-- through: not the last stamp of a look that was as long as one may be, because there may be more of that one.
with h as materialized (
  select pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select feed_offset from tape.meta) as stamp),
w as materialized (
  select r.stamp, r.journal from tape.records r
  where r.stamp > :after and r.stamp < (select h.stamp from h) order by r.stamp limit :scan),
e as materialized (
  select case when (select count(*) from w) < :scan then (select h.stamp from h) else (select max(w.stamp) from w) end - 1 as stamp)
select null as tenant, h.stamp - 1 as first, e.stamp as last from e cross join h
union all
select l.tenant, min(w.stamp), max(w.stamp) from w
  cross join lateral (select l.tenant from tape.leases l where l.journal = abs(w.journal) limit 1) l
where w.stamp <= (select e.stamp from e) group by l.tenant

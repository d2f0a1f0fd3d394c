-- read
-- Below the snapshot's xmin every transaction is finished, so nothing can appear there later: an older transaction that
-- commits last holds the feed back instead of being skipped. Order within a journal follows from the stamps. The first row
-- says how many records were passed over, and which was the last: of one tenant a look goes no further than :scan
-- records and the stamp :edge.
with w as materialized (
  select r.stamp, r.journal, r.seq from tape.records r
  where (r.stamp, r.journal, r.seq) > (:stamp, :journal, :seq)
    and r.stamp >= :stamp and r.stamp <= :edge
    and r.stamp < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select feed_offset from tape.meta)
  order by r.stamp, r.journal, r.seq limit :scan),
f as materialized (
  select w.stamp, w.journal, w.seq from w
  where :tenant is null or (select l.tenant from tape.leases l where l.journal = abs(w.journal)) = :tenant
  order by w.stamp, w.journal, w.seq limit :limit)
(select w.stamp, w.journal, w.seq, null as token, (select count(*) from w) as at, null as kind, null as body
  from w order by w.stamp desc, w.journal desc, w.seq desc limit 1)
union all
(select f.stamp, f.journal, f.seq, r.token, r.at, r.kind, r.body
  from f cross join lateral (select cast(r.token as text) as token, r.at, r.kind, r.body
    from tape.records r where r.journal = f.journal and r.seq = f.seq limit 1) r
  order by f.stamp, f.journal, f.seq)

-- read
-- Below the snapshot's xmin every transaction is finished, so nothing can appear there later: an older transaction that
-- commits last holds the feed back instead of being skipped. Order within a journal follows from the stamps.
select r.stamp, r.journal, r.seq, cast(r.token as text) as token, r.at, r.kind, r.body from tape.records r
where (r.stamp, r.journal, r.seq) > (:stamp, :journal, :seq)
  and r.stamp >= :stamp
  and r.stamp < pg_snapshot_xmin(pg_current_snapshot())::text::bigint + (select feed_offset from tape.meta)
  and (:tenant is null or (select l.tenant from tape.leases l where l.journal = abs(r.journal)) = :tenant)
order by r.stamp, r.journal, r.seq limit :limit

-- unfenced: as meta.restored, but only for the first process that sees the new timeline
update tape.meta set epoch = epoch + 1, token_floor = (epoch + 1) << 40, next_journal = next_journal + 4294967296,
  timeline = tape.timeline(), feed_offset = feed_offset + (
    select case when r.last < pg_snapshot_xmax(s.now)::text::bigint + meta.feed_offset then 0
      else r.last + 1 - pg_snapshot_xmin(s.now)::text::bigint - meta.feed_offset end
    from (select coalesce(max(stamp), 0) as last from tape.records) r, (select pg_current_snapshot() as now) s)
where timeline is distinct from tape.timeline()
returning epoch

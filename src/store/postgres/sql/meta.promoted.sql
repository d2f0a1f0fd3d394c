-- unfenced: as meta.restored, but only for the first process that sees the new timeline
update tape.meta set epoch = epoch + p.step, token_floor = (epoch + p.step) << 40,
  next_journal = next_journal + 4294967296 * p.step,
  timeline = tape.timeline(), feed_offset = feed_offset + (
    select case when r.last < pg_snapshot_xmax(s.now)::text::bigint + meta.feed_offset then 0
      else r.last + 1 - pg_snapshot_xmin(s.now)::text::bigint - meta.feed_offset end
    from (select coalesce(max(stamp), 0) as last from tape.records) r, (select pg_current_snapshot() as now) s)
from (select greatest(1, coalesce(('x' || tape.timeline())::bit(32)::bigint - ('x' || m.timeline)::bit(32)::bigint, 1)) as step
  from tape.meta m) p
where timeline is distinct from tape.timeline()
returning epoch

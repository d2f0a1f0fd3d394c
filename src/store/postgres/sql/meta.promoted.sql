-- unfenced: as meta.restored, but only for the first process that sees the new timeline
update tape.meta set epoch = epoch + 1, token_floor = (epoch + 1) << 40, timeline = tape.timeline(),
  feed_offset = feed_offset + greatest(0, (select coalesce(max(stamp), 0) from tape.records) + 1 - tape.stamp())
where timeline is distinct from tape.timeline()
returning epoch

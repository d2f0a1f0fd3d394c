-- unfenced: the store epoch goes up, so that no token is issued twice. 2^40 tokens an epoch, 2^23 epochs. The feed's
-- offset goes up too: a restored cluster may count its transactions from lower numbers than the stamps it holds.
update tape.meta set epoch = epoch + 1, token_floor = (epoch + 1) << 40, timeline = tape.timeline(),
  feed_offset = feed_offset + greatest(0, (select coalesce(max(stamp), 0) from tape.records) + 1 - tape.stamp())
returning epoch

-- unfenced: the store epoch goes up, so that no token is issued twice. 2^40 tokens an epoch, 2^23 epochs. By as many as
-- timelines have passed: one of which this server knows nothing may have raised it too, and handed out tokens, and be lost
-- with all that. Journal numbers
-- jump, because processes may still have some that were handed out before. The feed's offset goes up only where the
-- cluster really counts its transactions from lower numbers than the stamps it holds: raised under transactions that are
-- open, it would let the feed pass them.
update tape.meta set epoch = epoch + p.step, token_floor = (epoch + p.step) << 40,
  next_journal = next_journal + 4294967296 * p.step,
  timeline = tape.timeline(), feed_offset = feed_offset + (
    select case when r.last < pg_snapshot_xmax(s.now)::text::bigint + meta.feed_offset then 0
      else r.last + 1 - pg_snapshot_xmin(s.now)::text::bigint - meta.feed_offset end
    from (select coalesce(max(stamp), 0) as last from tape.records) r, (select pg_current_snapshot() as now) s)
from (select greatest(1, coalesce(('x' || tape.timeline())::bit(32)::bigint - ('x' || m.timeline)::bit(32)::bigint, 1)) as step
  from tape.meta m) p
returning epoch

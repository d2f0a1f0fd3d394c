import { decode } from "../../../base/codec.ts";
import type { SlotState } from "../../../model/queue.ts";
import type { RecordData } from "../../../model/records.ts";
import { debouncePos, type Slot, type SlotEvent, slotAfter } from "../../../model/slot.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";

export const slotOf = (row: RowOf<"slot.read">): Slot => ({
  journal: Number(row.journal),
  queue: Number(row.queue),
  key: row.key,
  class: Number(row.class),
  state: row.state as SlotState,
  keeps: Boolean(row.keeps),
  expires: Boolean(row.expires),
});

/** What has become of a run's place in its queue; undefined: it had none, or it did not move. */
export interface Move {
  readonly from: Slot;
  /** undefined: it has left the queue. */
  readonly to: SlotState | undefined;
}

/** Moves a run in its queue. Under the lock of its lease, which every writer of its slot holds. */
export function* moveSlot(context: PlanContext, journal: number, event: SlotEvent): Plan<Move | undefined> {
  const row = yield* queryRow("slot.read", { journal });
  if (row === undefined) return undefined;
  const from = slotOf(row);
  const after = slotAfter(from, event);
  if (after?.state === from.state) return undefined;
  if (after === undefined) yield* query("slot.delete", { journal });
  else yield* query("slot.set", { journal, ...after });
  const { queue, key } = from;
  if (queue > 0) {
    if (from.state === "HELD") context.partitions.return(queue, key);
    if (from.state === "QUEUED") context.partitions.leave(queue, key);
    if (after?.state === "QUEUED") context.partitions.enter(queue, key, after.class);
  }
  return { from, to: after?.state };
}

/**
 * A note has arrived for a run with a queue: it returns to the queue, leaves it, or joins it now that its time has come.
 * True: it waits in the queue since then.
 */
export function* noteSlot(context: PlanContext, journal: number, kind: string, body: string): Plan<boolean> {
  const event = eventOf(kind, body);
  const move = event === undefined ? undefined : yield* moveSlot(context, journal, event);
  if (event === undefined || move === undefined) return false;
  // Further starts are starts of another run.
  if (move.from.state === "DELAYED") yield* query("business_key.drop", { run: journal, pos: debouncePos });
  if (move.to !== undefined) return move.to === "QUEUED";
  // It ends without its code being called, or starts without a queue.
  if (event.of === "cancelled") yield* query("timers.cancel", { run: journal });
  yield* query("lease.wake", { journal, nextReactor: "recovery", delayMs: 0 });
  return true;
}

/** undefined: the note does not move the run. */
function eventOf(kind: string, body: string): SlotEvent | undefined {
  if (kind === "start.moved") return undefined;
  if (kind === "cancel.requested") return { of: "cancelled" };
  if (kind !== "timer.fired") return { of: "noted" };
  const { purpose } = decode(body) as RecordData<"timer.fired">;
  return { of: purpose === "start" ? "due" : purpose === "expire" ? "cancelled" : "noted" };
}

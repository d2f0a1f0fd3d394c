import type { JournalFigures } from "../../sdk/context.ts";
import type { Operations } from "./operations.ts";

/** From this many operations or notes on a generation is long: a replay takes about 50 ms by then. */
const longFrom = 5_000;

/**
 * How long the current generation is, as the code may see it: only what it has requested and received counts, so that a
 * replay returns the same at the same place.
 */
export function journalOf(ops: Operations): JournalFigures {
  const records = ops.lanes.taken;
  const notes = Math.max(0, ops.generation.lastNoteReceived - ops.drive.history.generation.notesTaken);
  return { records, notes, long: records >= longFrom || notes >= longFrom };
}

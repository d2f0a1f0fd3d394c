import { redriveTimer, retryTimer } from "../../model/projection.ts";
import type { JournalRecord } from "../../model/records.ts";

/** Whether a record of the journal has used a note. `received`: positions of children whose results have records. */
export function isUsed(
  note: JournalRecord,
  byPos: ReadonlyMap<number, readonly JournalRecord[]>,
  consumed: ReadonlySet<number>,
  received: ReadonlySet<number>,
): boolean {
  const has = (pos: number, ...kinds: string[]): boolean =>
    byPos.get(pos)?.some(({ kind }) => kinds.includes(kind)) ?? false;
  switch (note.kind) {
    case "signal.sent":
      return consumed.has(note.seq);
    case "timer.fired":
      if (note.data.purpose === redriveTimer) return true;
      if (note.data.purpose.startsWith("retry ")) return isRetryUsed(byPos.get(note.data.pos), note.data.purpose);
      return has(note.data.pos, "sleep.ended", "gate.resolved");
    case "effect.outcome":
      return note.data.sub !== 0 || has(note.data.pos, "effect.received");
    case "child.settled":
      return received.has(note.data.pos);
    default:
      return true;
  }
}

/** The attempt after the timer has a record. */
function isRetryUsed(records: readonly JournalRecord[] = [], purpose: string): boolean {
  const set = records.findIndex(
    (record) => record.kind === "step.failed" && retryTimer(record.data.attempt) === purpose,
  );
  return set < records.length - 1;
}

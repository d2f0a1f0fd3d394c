import { redriveTimer } from "../../model/projection.ts";
import type { JournalRecord, NewRecord } from "../../model/records.ts";

/**
 * Whether a record shows progress of the run. What a successor repeats after a crash (a term, an attempt) does not
 * count; otherwise a run that crashes its process in every attempt would seem to make progress forever.
 */
export function isProgress(record: NewRecord): boolean {
  switch (record.kind) {
    case "term.started":
    case "term.ended":
    case "run.suspected":
    case "replay.stalled":
    case "notes.taken":
    case "run.limited":
      return false;
    case "timer.set":
      return record.data.purpose === "sleep"; // the others are not set by the code
    case "effect.dispatched":
      return record.data.attempt <= 1;
    case "effect.settled":
      return record.data.to !== "PENDING";
    default:
      return true;
  }
}

export function positionOf(record: JournalRecord): number | undefined {
  const { data } = record as { data: { pos?: unknown; sub?: unknown } };
  if (typeof data.pos !== "number" || record.kind.startsWith("obligation.")) return undefined;
  if (record.kind === "run.continued") return undefined; // its position is the first of the generation
  // The deadline is of the run, and a redrive of an operator; neither is of an operation.
  if (record.kind === "timer.set" && record.data.purpose !== "sleep") return undefined;
  if (record.kind === "scope.closed" && record.data.reason === "timeout") return undefined; // the code did not request it
  if (record.kind === "children.due") return undefined;
  if (record.kind === "timer.cancelled" && record.data.purpose === redriveTimer) return undefined;
  return data.pos;
}

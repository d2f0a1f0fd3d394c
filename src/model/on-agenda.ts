import type { ChangeKind } from "./changes.ts";
import type { NewRecord, RecordKind } from "./records.ts";

/**
 * Changes that can put something on the agenda, or make something on it due earlier. A process that relies on alarms
 * must have set one before such a change commits. A test derives this list from the columns that the statement `agenda`
 * reads.
 */
export const agendaChanges: ReadonlySet<ChangeKind> = new Set<ChangeKind>([
  "lease.create",
  "lease.release",
  "lease.wake",
  "note.create",
  "items.sweep",
  "obligations.release_next",
  "slot.create",
  "slot.set",
  "timer.create",
]);

/** Kinds of records with such a change, for some data and some journal. */
const agendaKinds: ReadonlySet<RecordKind> = new Set<RecordKind>([
  "run.decided",
  "run.compensating",
  "run.ended",
  "step.failed",
  "term.ended",
  "child.started",
  "effect.intended",
  "effect.settled",
  "obligation.armed",
  "obligation.surplus",
  "obligation.due",
  "obligation.settled",
  "gate.opened",
  "timer.set",
  "scope.opened",
  "children.due",
]);

/** Whether appending this record can put something on the agenda. */
export function mayEnterAgenda(record: NewRecord): boolean {
  if (record.kind === "step.failed") return record.data.timer !== undefined;
  if (record.kind === "scope.opened") return record.data.timeoutMs !== undefined;
  if (record.kind === "gate.opened") return record.data.timeoutMs !== undefined;
  return agendaKinds.has(record.kind);
}

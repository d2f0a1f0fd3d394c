import type { JournalRecord, RecordData } from "../../model/records.ts";
import { startDelay } from "../../model/slot.ts";

/** What notes of a run's inbox mean for its start. */

type CreatedRun = RecordData<"run.created">;

/** The run's creation with the input of its last start: a debounced run has several. */
export function createdBy(created: CreatedRun, notes: readonly JournalRecord[]): CreatedRun {
  const moved = created.debounce && notes.findLast(({ kind }) => kind === "start.moved");
  if (moved?.kind !== "start.moved") return created;
  const { checked: _checked, ...rest } = created;
  const { input, inputHash, checked } = moved.data;
  return { ...rest, input, inputHash, ...(checked && { checked }) };
}

/** Why a run ends that was asked to stop before its code was called; undefined: its code runs, or has run. */
export function stoppedBefore(
  created: CreatedRun,
  notes: readonly JournalRecord[],
  admitted: boolean,
): "cancelled" | "expired" | undefined {
  const firedAt = (purpose: string): number =>
    notes.findIndex((note) => note.kind === "timer.fired" && note.data.purpose === purpose);
  const cancelledAt = notes.findIndex(({ kind }) => kind === "cancel.requested");
  if (created.queue === undefined) {
    if (startDelay(created) === undefined || cancelledAt < 0) return undefined;
    const startedAt = firedAt("start");
    return startedAt < 0 || cancelledAt < startedAt ? "cancelled" : undefined;
  }
  if (admitted) return undefined;
  if (firedAt("expire") >= 0) return "expired";
  return cancelledAt < 0 ? undefined : "cancelled";
}

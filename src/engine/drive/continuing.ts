import { isTapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import { labelsOf } from "../context/labels.ts";
import type { Continuation, DriveHandle } from "../core/handle.ts";
import { closeRun } from "./ending.ts";
import { limitsInForce } from "./limits.ts";

/**
 * Ends the current generation of a run and begins the next one, in one append: after a crash the run has the old one or
 * the new one. Its effects are settled by then. What is carried: signals that no gate has taken, the limits, and the
 * names that it has published. Notes that were not taken yet, such as a cancellation, stay untaken: the next generation
 * reads them like any other.
 */
export async function continueRun(drive: DriveHandle, next: Continuation): Promise<void> {
  const { history, waits, reservations, context, root } = drive;
  const { generation, published } = history;
  const { lease } = drive.options;
  const pos = context.lanes.firstAfter;
  const labels = labelsOf(drive);
  const { maxStallMs, deadlineSet } = limitsInForce(drive);
  const data: RecordData<"run.continued"> = {
    generation: generation.number + 1,
    pos,
    ...next,
    notesTaken: waits.notesTaken,
    notes: waits.unused.map(({ seq }) => seq),
    ...(maxStallMs !== undefined && { maxStallMs }),
    ...(deadlineSet && { deadline: true }),
    ...(labels && { labels: { ...labels } }),
    ...(published.size > 0 && { published: [...published] }),
  };
  const records: NewRecord[] = [...context.generation.openReplies(pos), ...reservations.closingRecords(root)];
  try {
    await drive.journal.appendExclusive([...records, { kind: "run.continued", data }]);
  } catch (error) {
    const large = isTapeError(error, "TAPE_TOO_LARGE") || isTapeError(error, "TAPE_NOT_ENCODABLE");
    if (!large) throw error;
    return closeRun(drive, { cause: "failed", outcome: error, final: true });
  }
  lease.head = drive.journal.head;
  lease.begins = drive.journal.head;
  drive.finish("continued");
}

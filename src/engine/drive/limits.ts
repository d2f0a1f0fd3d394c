import { errorTable, TapeError } from "../../model/errors.ts";
import { deadlineTimer } from "../../model/projection.ts";
import type { NewRecord } from "../../model/records.ts";
import type { AnyWorkflow } from "../../sdk/workflow.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { History } from "../replay/history.ts";

/** The limits of a run: how long it may take, and how long its holder may make no progress. */

/** A slow machine may stall twice. After the third time in a row the step itself must be the cause. */
const maxStalledTerms = 3;

/**
 * The records that put the limits of the workflow's code into force. The starter has written the limit on stalls if it
 * had the workflow; a run that was started by name, or by older code, gets it here. The deadline counts from the run's
 * first term.
 */
export function limitRecords(history: History, workflow: AnyWorkflow): NewRecord[] {
  const { maxStallMs } = workflow;
  const deadlineMs = history.created.deadlineMs ?? workflow.deadlineMs;
  const records: NewRecord[] = [];
  if (maxStallMs !== undefined && maxStallMs !== history.maxStallMs)
    records.push({ kind: "run.limited", data: { maxStallMs } });
  if (deadlineMs !== undefined && !history.deadlineSet)
    records.push({ kind: "timer.set", data: { ...deadlineTimer, delayMs: deadlineMs } });
  return records;
}

/** The limits once those records are written. */
export function limitsInForce({ history, options }: DriveHandle): Pick<History, "maxStallMs" | "deadlineSet"> {
  const workflow = options.runner.workflows.get(history.created.workflow);
  const deadlineMs = history.created.deadlineMs ?? workflow?.deadlineMs;
  return {
    maxStallMs: workflow?.maxStallMs ?? history.maxStallMs,
    deadlineSet: history.deadlineSet || deadlineMs !== undefined,
  };
}

/** Every holder so far has stalled: the run is replayed up to the operation in question, which is not executed again. */
export const hasStalledOften = ({ stalledTerms }: History): boolean => stalledTerms >= maxStalledTerms;

/** What the code waits for, by name. */
function stalledIn({ context }: DriveHandle): string {
  const { open } = context;
  return open.length === 0 ? "an await of something other than an operation" : open.join(", ");
}

export function stalledError(drive: DriveHandle): TapeError {
  const { workflow, id } = drive.history.created;
  const where = stalledIn(drive);
  const message = `${drive.history.stalledTerms} holders in a row made no progress with this run of ${workflow}, in ${where}`;
  return new TapeError("TAPE_STALLED", message, { run: id, operation: where });
}

/** Logs that this process lost the run because it made no progress. */
export function reportStalled(drive: DriveHandle): void {
  const { log, runId } = drive.options;
  if (drive.context === undefined) return; // lost while its journal was read
  const { next } = errorTable.TAPE_STALLED;
  log("warn", "run.stalled", { run: runId, operation: stalledIn(drive), code: "TAPE_STALLED", next });
}

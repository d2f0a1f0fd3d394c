import { errorFields } from "../../base/reason.ts";
import { releaseJournal } from "../../lease/release-journal.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { DriveOptions } from "../core/handle.ts";
import { stuckRecord } from "../core/stuck-records.ts";
import type { History } from "../replay/history.ts";
import type { RunOutcome } from "./ending.ts";

export const isDamaged = (error: unknown): error is TapeError => isTapeError(error, "TAPE_JOURNAL_DAMAGED");

type StopDeps = Pick<DriveOptions, "store" | "tenant" | "lease" | "log" | "runId">;

/** The end of a run that was asked to stop, or waited for too long, before its code was called. */
export function stoppedOutcome({ created, stoppedEarly }: History): RunOutcome {
  const { id, queue } = created;
  const message =
    stoppedEarly === "expired"
      ? `the run has waited in queue ${queue?.name} for longer than it may`
      : "the run was cancelled before it began";
  const outcome = new TapeError("TAPE_CANCELLED", message, { run: id, ...(queue && { queue: queue.name }) });
  return { cause: "cancelled", outcome, final: true };
}

/**
 * Makes a run STUCK whose journal cannot be replayed or continued: after `head`, or after the last record that is left.
 */
export function stopRun(options: StopDeps, error: TapeError, then: () => void, head = options.lease.head): void {
  const { log, runId } = options;
  log("error", "run.stuck", { run: runId, ...errorFields(error) });
  const failed = (failure: unknown): void => log("warn", "run.release_failed", { run: runId, ...errorFields(failure) });
  void appendStuck(options, error, head, failed).catch(failed).finally(then);
}

async function appendStuck(
  { store, tenant, lease }: StopDeps,
  error: TapeError,
  after: number,
  failed: (failure: unknown) => void,
): Promise<void> {
  const handoff = { waitingFor: ["an operator"] };
  let head = after;
  try {
    const generation = lease.begins > 1 ? { begins: lease.begins } : {};
    ({ head } = await store.fenced.append(lease.fence, { after, records: [stuckRecord(error, [])], ...generation }));
  } catch (failure) {
    failed(failure);
  }
  await releaseJournal(store, tenant, lease, head, handoff);
}

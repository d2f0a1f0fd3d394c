import { errorFields } from "../../base/reason.ts";
import { releaseJournal } from "../../lease/release-journal.ts";

import { isTapeError, type TapeError } from "../../model/errors.ts";
import type { DriveOptions } from "../core/handle.ts";
import { stuckRecord } from "./stuck-records.ts";

export const isDamaged = (error: unknown): error is TapeError => isTapeError(error, "TAPE_JOURNAL_DAMAGED");

type StopDeps = Pick<DriveOptions, "store" | "tenant" | "lease" | "log" | "runId">;

/** Nothing can be replayed of a journal that lacks a record: the run stops, behind what is left of it. */
export function stopRun(options: StopDeps, error: TapeError, then: () => void): void {
  const { log, runId } = options;
  log("error", "run.stuck", { run: runId, ...errorFields(error) });
  const failed = (failure: unknown): void => log("warn", "run.release_failed", { run: runId, ...errorFields(failure) });
  void stopBehind(options, error, failed).catch(failed).finally(then);
}

async function stopBehind(
  { store, tenant, lease }: StopDeps,
  error: TapeError,
  failed: (failure: unknown) => void,
): Promise<void> {
  const next = { waitingFor: ["a person"] };
  let { head } = lease.term;
  try {
    ({ head } = await store.fenced.append(lease.fence, { after: head, records: [stuckRecord(error, [])] }));
  } catch (failure) {
    failed(failure);
  }
  await releaseJournal(store, tenant, lease, head, next);
}

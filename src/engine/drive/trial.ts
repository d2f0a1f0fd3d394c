import type { TapeError } from "../../model/errors.ts";
import type { JournalRecord, NewRecord } from "../../model/records.ts";
import type { DriveHandle } from "../core/handle.ts";
import { neverRequested } from "../replay/divergence.ts";

/**
 * A run that an operator has moved to another build is on trial until that build has replayed its journal. Nothing is
 * started before: the replay only compares. Then the run belongs to the build; if the code differs, it returns.
 */

/** Longer messages quote values of the journal, which has them. */
const maxChars = 2_000;

/** The replay has found no difference: from here on the build's code continues the run. */
export function confirmTrial(drive: DriveHandle): void {
  const { trial } = drive.history;
  if (trial === undefined) return;
  const moved: NewRecord = { kind: "run.pinned", data: { build: trial.build, from: trial.from } };
  drive.options.log("info", "run.moved", { run: drive.options.runId, ...trial });
  drive.journal.enqueue(
    [moved],
    () => {},
    (error) => drive.fail(error),
  );
}

/** Everything recorded has been delivered. `left`: an open operation of the journal that the code has not requested. */
export function passesTrial(drive: DriveHandle, left: JournalRecord | undefined): boolean {
  if (left === undefined) confirmTrial(drive);
  else refuseTrial(drive, neverRequested(left));
  return left === undefined;
}

/** Returns the run to the build that it came from. false: it is not on trial, or its code has continued it. */
export function refuseTrial(drive: DriveHandle, error: TapeError): boolean {
  const { trial } = drive.history;
  if (trial === undefined || drive.replay?.live === true) return false;
  const { log, runId } = drive.options;
  log("warn", "run.move_refused", { run: runId, ...trial, code: error.code, error: error.message });
  const refused = error.message.slice(0, maxChars);
  const back: NewRecord = { kind: "run.pinned", data: { build: trial.from, from: trial.build, refused } };
  const park = (): Promise<void> =>
    drive.parkWith(() => [back, drive.termEnded([`build ${trial.from}`], { nextReactor: "recovery" })], park);
  void park().catch((failure: unknown) => drive.fail(failure));
  return true;
}

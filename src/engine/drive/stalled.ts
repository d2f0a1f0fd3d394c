import { backoffMs } from "../../base/backoff.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { DriveHandle } from "../core/handle.ts";
import { awaitedInVain, describe } from "../replay/divergence.ts";

/**
 * How long a workflow may await something other than an operation between two operations (which it should not). A
 * minute, because a `retry-after` of a recorded response or the import of a framework on a loaded machine takes more
 * than seconds.
 */
export const defaultReplayTimeoutMs = 60_000;
/** A temporary slowdown is over by the third time; after that the run becomes STUCK. */
const maxStalls = 3;
const pauses = { baseMs: 5_000, factor: 12, capMs: 60_000 };

/** Replay has waited in vain: releases the run for a later retry, or makes it STUCK after the third time. */
export async function stallReplay(drive: DriveHandle, record: JournalRecord): Promise<void> {
  const { log, runId, random, patienceMs = defaultReplayTimeoutMs } = drive.options;
  const attempt = drive.history.stalls + 1;
  if (attempt >= maxStalls) return drive.markStuck(awaitedInVain(record, patienceMs, attempt));
  const awaited = describe(record);
  const delayMs = Math.ceil(backoffMs(attempt, pauses, random));
  const next = "Move what the workflow waits for into a step, or raise replayPatience.";
  log("warn", "run.replay_stalled", { run: runId, attempt, awaited, waitedMs: patienceMs, delayMs, next });
  const data = { attempt, seq: record.seq, awaited, waitedMs: patienceMs };
  const park = (): Promise<void> =>
    drive.parkWith(
      () => [
        { kind: "replay.stalled", data },
        drive.termEnded([`a replay that requests ${awaited}`], { nextReactor: "recovery", delayMs }),
      ],
      park,
    );
  await park();
}

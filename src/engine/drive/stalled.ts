import { backoffMs } from "../../base/backoff.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { DriveHandle } from "../core/handle.ts";
import { awaitedInVain, describe } from "../replay/divergence.ts";

/**
 * A workflow that awaits something of its own between two operations (which it should not) gets this long. A minute: a
 * `retry-after` of a recorded answer, or the import of a framework on a loaded machine, takes longer than seconds.
 */
export const defaultReplayTimeoutMs = 60_000;
/** Then a person must look: what is slow for a while is fast again by the third time. */
const maxStalls = 3;
const pauses = { baseMs: 5_000, factor: 12, capMs: 60_000 };

/** Replay has waited in vain: the run is given back and tried again later; after the third time it is stuck. */
export async function stallReplay(drive: DriveHandle, record: JournalRecord): Promise<void> {
  const { log, runId, random, patienceMs = defaultReplayTimeoutMs } = drive.options;
  const attempt = drive.history.stalls + 1;
  if (attempt >= maxStalls) return drive.markStuck(awaitedInVain(record, patienceMs, attempt));
  const awaited = describe(record);
  const delayMs = Math.ceil(backoffMs(attempt, pauses, random));
  const next = "Put what the workflow waits for into a step, or raise replayPatience.";
  log("warn", "run.replay_stalled", { run: runId, attempt, awaited, waitedMs: patienceMs, againInMs: delayMs, next });
  const data = { attempt, seq: record.seq, awaited, forMs: patienceMs };
  const park = (): Promise<void> =>
    drive.parkWith(
      () => [
        { kind: "replay.stalled", data },
        drive.termEnded([`a replay that asks for ${awaited}`], { nextReactor: "recovery", delayMs }),
      ],
      park,
    );
  await park();
}

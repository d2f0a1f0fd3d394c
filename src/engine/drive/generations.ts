import { releaseJournal } from "../../lease/release-journal.ts";
import type { DriveEnd, DriveOptions, RunResult } from "../core/handle.ts";
import { Drive } from "./drive.ts";

/**
 * Drives a run for one term, generation by generation: the run keeps its lease and its slot. Each generation is a drive
 * of its own that starts from the journal, exactly as it does after a crash. `stopped`: the process is draining, and
 * another one drives the next generation.
 */
export async function driveGenerations(
  first: DriveOptions,
  stopped: () => boolean,
  driving: { drive?: Drive; readonly notified: boolean },
): Promise<{ readonly end: DriveEnd; readonly settled: RunResult | undefined }> {
  const { fresh: _fresh, created: _created, preloadMs: _preloadMs, suspicion: _suspicion, ...next } = first;
  const { store, tenant, lease } = first;
  for (let options = first; ; options = next) {
    const drive = new Drive(options);
    driving.drive = drive;
    if (driving.notified) drive.notify();
    const end = await drive.run();
    if (end !== "continued") return { end, settled: drive.settled };
    if (stopped()) {
      await releaseJournal(store, tenant, lease, lease.head, { endReason: "drained", nextReactor: "recovery" });
      return { end: "lost", settled: undefined };
    }
  }
}

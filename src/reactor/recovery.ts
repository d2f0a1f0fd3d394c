import type { DriveCounts, RunDriver } from "../engine/run-driver.ts";
import type { Reactor, ReactorCounts } from "./reactor.ts";

/**
 * recovery: drives runs without a holder that could continue: new runs, runs whose holder crashed, and runs that wait,
 * end or compensate while a note is in their inbox. It acquires the run's lease and drives the run as far as possible.
 * Runs of workflows that this process does not have are left to other processes, and logged if none claims them.
 */
export function recovery(
  driver: Pick<RunDriver, "poll" | "capacity" | "unserved">,
): Required<Omit<Reactor, "dueInMs">> {
  const poll: Required<Omit<Reactor, "dueInMs">>["poll"] = async (limit, onItemDone, _perCallee, onlySlots = false) => {
    // A slot that is free again may be for another run: it is polled for at once.
    const { found, done } = await driver.poll(limit, (slot) => onItemDone(undefined, slot), onlySlots);
    // The agenda had work, but none for this process: check whether any process serves it.
    const unserved = found === 0 && !onlySlots && driver.capacity > 0 ? await driver.unserved() : 0;
    // Fewer than asked for: no slot is left, or no run that waits for one.
    const more = onlySlots ? { more: found >= limit } : {};
    return {
      found,
      ...more,
      done: done.then((counts) => ({ ...countsOf(counts), ...(unserved > 0 && { unserved }) })),
    };
  };
  return {
    name: "recovery",
    onAgenda: true,
    batch: 250,
    poll,
    runOnce: async (limit) => (await poll(limit, () => {})).done,
    capacity: () => driver.capacity,
  };
}

/** Runs that were lost to another holder or broke off count as failed; every other end counts as done. */
function countsOf({ found, lost, lagMs }: DriveCounts): ReactorCounts {
  return { found, done: found - lost, failed: lost, lagMs };
}

import type { DriveCounts, RunDriver } from "../engine/run-driver.ts";
import type { Reactor, ReactorCounts } from "./reactor.ts";

/**
 * recovery: runs that nobody drives and that could go on: fresh ones, those whose driver vanished, and those that wait,
 * end or compensate while a note lies in their inbox. Acquires the run's lease and drives it as far as it goes.
 * Runs of workflows that this process does not have are left to those who do, and told of if nobody takes them.
 */
export function recovery(worker: Pick<RunDriver, "poll" | "capacity" | "unserved">): Required<Reactor> {
  const begin: Required<Reactor>["poll"] = async (limit, freed) => {
    const { found, done } = await worker.poll(limit, () => freed());
    // Told that something is due, and nothing for us: is it anybody's?
    const unserved = found === 0 && worker.capacity > 0 ? await worker.unserved() : 0;
    return { found, done: done.then((counts) => ({ ...countsOf(counts), ...(unserved > 0 && { unserved }) })) };
  };
  return {
    name: "recovery",
    onAgenda: true,
    batch: 250,
    poll: begin,
    runOnce: async (limit) => (await begin(limit, () => {})).done,
    capacity: () => worker.capacity,
  };
}

/** A run that was lost to somebody else, or broke off, is looked at again; the other ends are as good as each other. */
function countsOf({ found, lost, lagMs }: DriveCounts): ReactorCounts {
  return { found, done: found - lost, failed: lost, lagMs };
}

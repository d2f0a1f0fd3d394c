import type { RunView, Store } from "../../src/store/contract/store.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** Ended, or waiting for a person: nothing more happens by itself. */
export const isSettled = (run: RunView): boolean => run.endedAt !== null || run.status === "STUCK";

/**
 * How long nothing can happen but the passing of time: every live run waits, nobody holds or wants anything, and the
 * next timer is so far away. 0: something may happen now. Infinity: nothing ever will by itself.
 */
export async function quietMs(store: Store, tenant: string): Promise<number> {
  const leases = await store.read.leases(tenant);
  if (leases.some(({ owner, nextReactor }) => owner !== null || nextReactor !== null)) return 0;
  const timers = (await store.read.agenda()).find(({ reactor }) => reactor === "timers");
  return timers?.inMs ?? Number.POSITIVE_INFINITY;
}

/**
 * Lets virtual time pass until every run of the tenant has settled, or waits for something that only comes from outside.
 * Long waits are skipped and do not count.
 */
export async function settleRuns(time: VirtualTime, store: Store, tenant: string, boundMs: number): Promise<RunView[]> {
  for (let until = time.now + boundMs, still = 0; ; ) {
    const runs = await time.during(store.read.runs(tenant));
    if (runs.every(isSettled) || still > 1) return runs;
    if (time.now > until) {
      const left = runs.filter((run) => !isSettled(run)).map(({ id, status }) => `${id} is ${status}`);
      throw new Error(`after ${boundMs} ms of virtual time: ${left.join(", ")}`);
    }
    // A jump ends just before the timer: it fires in its own time, and never early.
    const quiet = await time.during(quietMs(store, tenant));
    if (quiet === Number.POSITIVE_INFINITY) still++;
    else if (quiet > 1_000) {
      time.jump(quiet - 1);
      until += quiet;
    }
    await time.elapse(100);
  }
}

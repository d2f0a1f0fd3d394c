import type { RunView, Store } from "../../src/store/contract/store.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** The run has ended, or needs an operator. */
export const isSettled = (run: RunView): boolean => run.endedAt !== null || run.status === "STUCK";

/**
 * How long nothing can happen but the passing of time: no lease is held or queued, and the next timer is this far away.
 * 0: something may happen now. Infinity: nothing will happen without a client.
 */
export async function idleMs(store: Store, tenant: string): Promise<number> {
  const leases = await store.read.leases(tenant);
  if (leases.some(({ owner, nextReactor }) => owner !== null || nextReactor !== null)) return 0;
  const timers = (await store.read.agenda()).find(({ reactor }) => reactor === "timers");
  return timers?.dueInMs ?? Number.POSITIVE_INFINITY;
}

/**
 * Lets virtual time pass until every run of the tenant has settled or waits for a client. Skipped waits do not count.
 */
export async function settleRuns(time: VirtualTime, store: Store, tenant: string, boundMs: number): Promise<RunView[]> {
  for (let until = time.now + boundMs, idlePolls = 0; ; ) {
    const runs = await time.during(store.read.runs(tenant));
    if (runs.every(isSettled) || idlePolls > 1) return runs;
    if (time.now > until) {
      const left = runs.filter((run) => !isSettled(run)).map(({ id, status }) => `${id} is ${status}`);
      throw new Error(`after ${boundMs} ms of virtual time: ${left.join(", ")}`);
    }
    // A jump ends just before the timer, which then fires on time and never early.
    const idleFor = await time.during(idleMs(store, tenant));
    if (idleFor === Number.POSITIVE_INFINITY) idlePolls++;
    else if (idleFor > 1_000) {
      time.jump(idleFor - 1);
      until += idleFor;
    }
    await time.elapse(100);
  }
}

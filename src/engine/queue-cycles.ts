import type { CycleStep } from "../model/queue-cycle.ts";
import type { Store } from "../store/contract/store.ts";
import { readQueues } from "../store/read-queues.ts";

/** A shorter wait may be an ordinary one. */
const minWaitMs = 10_000;
/** Each costs a few lookups. */
const maxHolders = 200;

/** A cycle of runs that keep each other's slots, see model/queue-cycle.ts. */
export type QueueCycle = readonly CycleStep[];

/**
 * The cycles of a tenant's queues. Each has a run that waits and keeps a slot for which another one waits, so the
 * search starts there.
 */
export async function queueCycles(
  { read }: Pick<Store, "read">,
  tenant: string,
  limit: number = maxHolders,
): Promise<QueueCycle[]> {
  const queues = (await readQueues(read, tenant)).filter(
    ({ spec, running, oldestWaitMs = 0 }) => spec.counts === "started" && running > 0 && oldestWaitMs >= minWaitMs,
  );
  const slots = await Promise.all(queues.map(({ name }) => read.queueSlots(tenant, name, { state: "HELD", limit })));
  const holders = slots.flat().filter(({ status }) => status === "WAITING");
  const found = new Map<string, QueueCycle>();
  for (const { run } of holders.slice(0, limit)) {
    const reasons = (await read.queuePosition(tenant, run))?.reasons ?? [];
    for (const reason of reasons) if (reason.why === "cycle") found.set(JSON.stringify(reason.steps), reason.steps);
  }
  return [...found.values()];
}

import { strict as assert } from "node:assert";
import { systemClock } from "../../src/base/clock.ts";
import type { QueueSpec } from "../../src/model/queue.ts";
import type { FindRequest, QueuePosition, RunSpec, Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import { spec, tenant, unique } from "./frame.ts";
import { Holder } from "./holder.ts";
import { findRequest } from "./lease-fixtures.ts";

/** Fixtures for cases about queues. */

export const audit = { by: "ann", reason: "drill" } as const;

/** A queue that no other case uses. */
export async function newQueue(store: Store, limits: Partial<QueueSpec> = {}): Promise<string> {
  const name = unique("queue");
  await store.intake.putQueue(tenant, name, { counts: "running", ...limits });
  return name;
}

/** Creates runs that wait in a queue; returns their ids. */
export async function enqueue(
  store: Store,
  queue: string,
  count: number,
  more: Partial<RunSpec> = {},
): Promise<string[]> {
  const specs = Array.from({ length: count }, () => spec({ queue, ...more }));
  const created = await store.intake.createRuns(tenant, specs);
  for (const one of created) if (!one.ok) throw one.error;
  return specs.map(({ id }) => id);
}

export const findIn = (queue: string, room = 100, more: Partial<FindRequest> = {}): FindRequest =>
  findRequest({ tenant, workflows: ["w"], queues: [{ name: queue, room }], ...more });

/** Admits runs of a queue. */
export async function admit(
  store: Store,
  queue: string,
  room = 100,
  more: Partial<FindRequest> = {},
): Promise<Holder[]> {
  const terms = await store.claim.find(findIn(queue, room, more));
  return terms.map((term) => new Holder(store, term, term.name!));
}

/** Admits the only run that could start. */
export async function admitOne(store: Store, queue: string, more: Partial<FindRequest> = {}): Promise<Holder> {
  const found = await admit(store, queue, 100, more);
  assert.equal(found.length, 1, "one run is admitted");
  return found[0]!;
}

export async function positionOf(store: Store, run: string): Promise<QueuePosition> {
  const position = await store.read.queuePosition(tenant, run);
  assert.ok(position !== undefined, `${run} is in a queue`);
  return position;
}

/** The state of a run in its queue and its status; "out": it has left the queue. */
export async function stateOf(store: Store, run: string): Promise<[slot: string, status: string]> {
  const view = await store.read.run(tenant, run);
  return [view?.lease.slot ?? "out", view?.status ?? "none"];
}

/** Slots held and runs waiting, in all. */
export async function countsOf(store: Store, queue: string): Promise<[running: number, waiting: number]> {
  const all = await store.read.queues(tenant);
  const view = all.find(({ name }) => name === queue)!;
  return [view.running, view.waiting];
}

/** The tables are what the records say, down to the counters of each key. Open transactions may hold the feed back. */
export async function assertProjected(store: Store): Promise<void> {
  let faults = await checkProjection(store, [tenant]);
  for (let tries = 0; tries < 100 && faults.length > 0 && store.backend === "postgres"; tries++) {
    await systemClock.sleep(20);
    faults = await checkProjection(store, [tenant]);
  }
  assert.deepEqual(faults, []);
}

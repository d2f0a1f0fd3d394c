import { strict as assert } from "node:assert";
import type { CycleStep } from "../../src/model/queue-cycle.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, record, tenant, unique } from "./frame.ts";
import type { Holder } from "./holder.ts";
import { admitOne, audit, enqueue, newQueue, positionOf } from "./queue-fixtures.ts";

const started = (store: Store, limits: object = { concurrency: 1 }): Promise<string> =>
  newQueue(store, { counts: "started", ...limits });

/** A new run that holds a slot. */
async function holderIn(store: Store, queue: string, key = ""): Promise<Holder> {
  await enqueue(store, queue, 1, { key });
  return admitOne(store, queue);
}

/** Starts a child; without a queue, it is ready to run. */
async function child(parent: Holder, pos: number, queue?: string, key = ""): Promise<string> {
  const id = unique("child");
  const place = queue === undefined ? {} : { queue: { name: queue, key, priority: 5 } };
  await parent.write(record("child.started", { pos, id, workflow: "w", input: 1, inputHash: "h", ...place }));
  return id;
}

async function cycleOf(store: Store, run: string): Promise<readonly CycleStep[] | undefined> {
  const cycle = (await positionOf(store, run)).reasons.find(({ why }) => why === "cycle");
  return cycle?.why === "cycle" ? cycle.steps : undefined;
}

/** Two runs, each with a slot of one queue and a child that waits in the other. */
async function crossed(store: Store, also: (one: Holder) => Promise<unknown> = async () => {}) {
  const [left, right] = [await started(store), await started(store)];
  const [a, b] = [await holderIn(store, left), await holderIn(store, right)];
  const childOfA = await child(a, 0, right);
  const childOfB = await child(b, 0, left);
  await also(b);
  const steps = [
    { run: childOfA, queue: right, key: "", holder: b.id },
    { run: childOfB, queue: left, key: "", holder: a.id },
  ];
  return { left, right, a, b, childOfA, childOfB, steps };
}

/** Runs that keep each other's slots: every one of them says so, and no other run does. */
export const queueCycles: Cases = ({ it }, fresh) => {
  it("each run of a cycle names it, and so does a run that waits behind it", async () => {
    const { store } = fresh();
    const { left, a, b, childOfA, childOfB, steps } = await crossed(store);
    await a.release();
    assert.equal(await cycleOf(store, childOfA), undefined, "the other holder still runs");
    await b.release();
    const [behind] = await enqueue(store, left, 1);
    for (const run of [childOfA, a.id, childOfB, b.id, behind!]) assert.deepEqual(await cycleOf(store, run), steps);
    await store.intake.cancel(tenant, childOfB, audit);
    assert.equal(await cycleOf(store, childOfA), undefined, "its parent continues");
  });

  it("a run that may continue for another reason is in no cycle", async () => {
    const { store } = fresh();
    const others: Record<string, (run: Holder) => Promise<unknown>> = {
      gate: (run) => run.write(record("gate.opened", { pos: 1, name: "ok" })),
      timer: (run) => run.write(record("timer.set", { pos: 1, purpose: "sleep", delayMs: 3_600_000 })),
      child: (run) => child(run, 1),
    };
    for (const [what, also] of Object.entries(others)) {
      const { a, b, childOfA, childOfB } = await crossed(store, also);
      await a.release();
      await b.release();
      for (const run of [childOfA, childOfB, a.id, b.id]) assert.equal(await cycleOf(store, run), undefined, what);
    }
  });

  it("a slot of a holder that runs breaks the cycle", async () => {
    const { store } = fresh();
    const [left, right] = [await started(store), await started(store, { concurrency: 2 })];
    const [a, b] = [await holderIn(store, left), await holderIn(store, right)];
    const other = await holderIn(store, right);
    const childOfA = await child(a, 0, right);
    await child(b, 0, left);
    await a.release();
    await b.release();
    assert.equal(await cycleOf(store, childOfA), undefined);
    const childOfOther = await child(other, 0, left);
    await other.release();
    assert.equal((await cycleOf(store, childOfA))?.length, 2, "both holders wait for it now");
    assert.notEqual(await cycleOf(store, childOfOther), undefined);
  });

  it("a cycle leads through keys, and through children of children", async () => {
    const { store } = fresh();
    const queue = await started(store, { perKey: { concurrency: 1 } });
    const [a, b] = [await holderIn(store, queue, "a"), await holderIn(store, queue, "b")];
    const between = await newQueue(store);
    const middle = await child(a, 0, between);
    await a.release();
    const running = await admitOne(store, between);
    assert.equal(running.id, middle);
    const last = await child(running, 0, queue, "b");
    await running.release();
    const childOfB = await child(b, 0, queue, "a");
    await b.release();
    const steps = [
      { run: last, queue, key: "b", holder: b.id },
      { run: childOfB, queue, key: "a", holder: a.id },
    ];
    for (const run of [last, childOfB, a.id, b.id, middle]) assert.deepEqual(await cycleOf(store, run), steps);
  });
};

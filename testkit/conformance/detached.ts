import { strict as assert } from "node:assert";
import { type Cases, record, spec, step, tenant, unique } from "./frame.ts";
import { begin, dataOf, decided, ended, hold, statusOf, unchanged, viewOf } from "./holder.ts";

const audit = { by: "ops", reason: "test" };

/** Runs that a run starts without being their parent. */
export const detachedRuns: Cases = ({ it }, fresh) => {
  const detached = (by: string, id: string, more: object = {}) =>
    record("child.started", { pos: 0, id, workflow: "w", input: 1, inputHash: "h", startedBy: by, ...more });

  it("a detached child is a root of its own, with a link to the run that started it", async () => {
    const { store } = fresh();
    const starter = await begin(store);
    const id = unique("detached");
    await starter.write(step(1), detached(starter.id, id, { budget: { usd: 5 } }));
    const born = await viewOf(store, id);
    assert.deepEqual([born.status, born.parent, born.root, born.tenant], ["RUNNABLE", null, born.journal, tenant]);
    const [created] = await store.read.journal(tenant, { run: id });
    const data = dataOf(created, "run.created");
    assert.deepEqual([data.startedBy, data.parent], [starter.id, undefined]);
    assert.deepEqual(await store.read.budgets(tenant, id), [
      { run: born.journal, unit: "usd", cap: 5, reserved: 0, spent: 0 },
    ]);
  });

  it("a run ends while its detached child lives, and gets no note of its end", async () => {
    const { store } = fresh();
    const starter = await begin(store);
    const id = unique("detached");
    await starter.write(detached(starter.id, id));
    await starter.write(ended("COMPLETED", { outcome: 1 }));
    const child = await hold(store, id);
    await child.write(ended("COMPLETED", { outcome: 2 }));
    assert.equal(await statusOf(store, id), "COMPLETED");
    assert.deepEqual(await store.read.journal(tenant, { run: starter.id }, { inbox: true }), []);
  });

  it("the id of a detached child is unique, and a joined one creates nothing", async () => {
    const { store } = fresh();
    const taken = spec();
    await store.intake.createRuns(tenant, [taken]);
    const starter = await begin(store);
    await unchanged(store, () => starter.refused("TAPE_RUN_CONFLICT", step(1), detached(starter.id, taken.id)));
    await starter.write(detached(starter.id, taken.id, { joined: true }));
    assert.equal((await viewOf(store, taken.id)).parent, null);
  });

  it("an ending run starts no detached child", async () => {
    const { store } = fresh();
    const starter = await begin(store);
    await starter.write(decided("failed"));
    const child = detached(starter.id, unique("detached"));
    await unchanged(store, () => starter.refused("TAPE_ILLEGAL_TRANSITION", child));
  });

  it("a detached child counts as a start: a full quota refuses it, and nothing is written", async () => {
    const { store } = fresh();
    const starter = await begin(store);
    await store.intake.setQuota(tenant, { runs: 1 }, audit);
    await unchanged(store, () => starter.refused("TAPE_QUOTA", step(1), detached(starter.id, unique("detached"))));
    await store.intake.setQuota(tenant, { runs: 2 }, audit);
    await starter.write(detached(starter.id, unique("detached")));
    assert.equal((await store.read.quota(tenant)).used.runs, 2);
  });

  it("pruning the starter leaves its detached child", async () => {
    const { store } = fresh();
    const starter = await begin(store);
    const id = unique("detached");
    await starter.write(detached(starter.id, id));
    await starter.write(ended("COMPLETED", { outcome: 1 }));
    await store.intake.prune(tenant, (await store.read.now()) + 1, 10);
    assert.equal(await store.read.run(tenant, starter.id), undefined);
    assert.equal(await statusOf(store, id), "RUNNABLE");
  });
};

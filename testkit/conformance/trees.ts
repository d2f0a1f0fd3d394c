import { strict as assert } from "node:assert";
import type { FeedRecord, Store } from "../../src/store/contract/store.ts";
import { type Cases, record, refused, request, spec, step, tenant, unique } from "./frame.ts";
import {
  begin,
  childEnded,
  confirmed,
  dataOf,
  decided,
  ended,
  hold,
  intent,
  startChild,
  statusOf,
  unchanged,
  viewOf,
} from "./holder.ts";

/** Parents and children, and pruning of finished trees. */
export const trees: Cases = ({ it }, fresh) => {
  it("a child is created in its parent's tenant and tree, RUNNABLE", async () => {
    const { store } = fresh();
    const parent = await begin(store);
    const [childId, grandId] = [unique("child"), unique("grandchild")];
    const labels = { team: "ops" };
    await parent.write(
      step(0),
      record("child.started", {
        pos: 1,
        id: childId,
        workflow: "pay",
        version: "3",
        input: 7n,
        inputHash: "h",
        labels,
      }),
    );
    const born = await viewOf(store, childId);
    assert.deepEqual(
      [born.status, born.workflow, born.version, born.parent, born.root, born.inputHash, born.tenant],
      ["RUNNABLE", "pay", "3", parent.journal, parent.journal, "h", tenant],
    );
    assert.deepEqual(born.labels, labels);
    const [created] = await store.read.journal(tenant, { run: childId });
    assert.deepEqual([created?.seq, created?.token], [1, 0n]);
    const data = dataOf(created, "run.created");
    assert.equal(data.input, 7n);
    assert.deepEqual(data.parent, { journal: parent.journal, pos: 1 });
    const child = await hold(store, childId);
    const grandchild = await startChild(child, 0, grandId);
    const grand = await grandchild.view();
    assert.deepEqual([grand.parent, grand.root], [child.journal, parent.journal]);
  });

  it("a child's id is unique like every run's", async () => {
    const { store } = fresh();
    const taken = spec();
    await store.intake.createRuns(tenant, [taken]);
    const parent = await begin(store);
    const child = { pos: 0, workflow: taken.workflow, input: taken.input, inputHash: "h" };
    await unchanged(store, () =>
      parent.refused("TAPE_RUN_CONFLICT", step(1), record("child.started", { ...child, id: taken.id })),
    );
    await parent.write(record("child.started", { ...child, id: unique("child") }));
  });

  it("an ending or stuck run starts no children", async () => {
    const { store } = fresh();
    for (const last of [decided("failed"), record("run.stuck", { reason: "odd" })]) {
      const parent = await begin(store);
      await parent.write(last);
      const child = { pos: 0, id: unique("child"), workflow: "w", input: 1, inputHash: "h" };
      await unchanged(store, () => parent.refused("TAPE_ILLEGAL_TRANSITION", record("child.started", child)));
    }
  });

  it("the end of a child notifies and wakes its parent in one transaction", async () => {
    const { store } = fresh();
    const parent = await begin(store);
    const id = unique("child");
    const child = await startChild(parent, 4, id);
    await parent.release();
    assert.equal(await statusOf(store, parent.id), "WAITING");
    await childEnded(child, parent, 4, "COMPLETED", { outcome: { paid: true } });
    const woken = await parent.view();
    assert.deepEqual([woken.status, woken.notes], ["RUNNABLE", 1]);
    const [note] = await store.read.journal(tenant, { run: parent.id }, { inbox: true });
    assert.equal(note?.kind, "child.settled");
    assert.deepEqual(note.data, { pos: 4, id, status: "COMPLETED", outcome: { paid: true } });
    const again = await hold(store, parent.id);
    assert.equal(again.term.notes, 1);
    await again.write(record("notes.taken", { through: 1 }), ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    assert.equal(await statusOf(store, parent.id), "COMPLETED");
  });

  it("a child that does not end sends no note", async () => {
    const { store } = fresh();
    const parent = await begin(store);
    const child = await startChild(parent, 0, unique("child"));
    await parent.release();
    await child.write(intent(0));
    await unchanged(store, () =>
      child.refused(
        "TAPE_RUN_UNSETTLED",
        ended("COMPLETED", { outcome: 1, parent: { journal: parent.journal, pos: 0, id: child.id } }),
      ),
    );
    assert.equal((await parent.view()).notes, 0);
  });

  it("a pruned run leaves a tombstone, and its id stays reserved", async () => {
    const { store, elapse } = fresh();
    const runSpec = spec();
    await store.intake.createRuns(tenant, [runSpec]);
    const run = await hold(store, runSpec.id);
    await run.write(...confirmed(0, { dispatch: "inline" }), ended("COMPLETED", { outcome: 1 }));
    const bystander = await begin(store, { budget: { usd: 1 } });
    await bystander.write(...confirmed(0), record("gate.opened", { pos: 1, name: "g", timeoutMs: 60_000 }));
    const other = await begin(store);
    await store.intake.createRuns("globex", [spec()]);
    await elapse(20);
    const cut = await store.read.now();
    await elapse(20);
    await other.write(ended("FAILED", { outcome: 1 }));
    const before = JSON.stringify([await bystander.view(), await other.view()].map(({ journal, id }) => [journal, id]));
    assert.equal(await store.intake.prune("globex", cut, 10), 0);
    assert.equal(await store.intake.prune(tenant, cut, 10), 1);
    assert.equal(await store.intake.prune(tenant, cut, 10), 0);
    assert.equal(await store.read.run(tenant, runSpec.id), undefined);
    assert.deepEqual(await store.read.journal(tenant, { run: runSpec.id }), []);
    assert.deepEqual(await store.read.journal(tenant, { journal: run.journal }), []);
    assert.deepEqual(await store.read.effects(tenant, { run: runSpec.id }), []);
    assert.equal(await store.read.lease(tenant, { journal: run.journal }), undefined);
    await unchanged(store, async () => {
      for (const again of [runSpec, { ...runSpec, input: "another" }]) {
        const [verdict] = await store.intake.createRuns(tenant, [again]);
        assert.ok(verdict !== undefined && !verdict.ok);
        assert.equal(verdict.error.code, "TAPE_RUN_GONE");
      }
      await refused("TAPE_RUN_NOT_FOUND", store.claim.acquire(tenant, request({ run: runSpec.id })));
    });
    const after = JSON.stringify([await bystander.view(), await other.view()].map(({ journal, id }) => [journal, id]));
    assert.equal(after, before);
    assert.equal((await store.read.effects(tenant)).length, 1);
    assert.equal((await store.read.gates(tenant)).length, 1);
    assert.equal((await store.read.timers(tenant)).length, 1);
    assert.equal((await store.read.budgets(tenant, bystander.id)).length, 1);
    await bystander.write(step(2));
  });

  it("a prune deletes at most its limit, and returns the count", async () => {
    const { store, elapse } = fresh();
    for (let k = 0; k < 5; k++) await (await begin(store)).write(ended("COMPLETED", { outcome: k }));
    await elapse(20);
    const now = await store.read.now();
    assert.equal(await store.intake.prune(tenant, now - 3_600_000, 10), 0);
    assert.equal(await store.intake.prune(tenant, now, 3), 3);
    assert.equal((await store.read.runs(tenant)).length, 2);
    assert.equal(await store.intake.prune(tenant, now, 3), 2);
  });

  it("no run of a tree is pruned while one is open", async () => {
    const { store, elapse } = fresh();
    const parent = await begin(store);
    const child = await startChild(parent, 0, unique("child"));
    await childEnded(child, parent, 0, "COMPLETED", { outcome: 1 });
    await elapse(20);
    assert.equal(await store.intake.prune(tenant, await store.read.now(), 10), 0);
    await parent.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    await elapse(20);
    assert.equal(await store.intake.prune(tenant, await store.read.now(), 10), 2);
    assert.deepEqual(await store.read.runs(tenant), []);
  });

  it("an ended run with open obligations is not pruned", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(
      ...confirmed(0),
      record("obligation.surplus", { pos: 0, sub: 2, semantics: "non_idempotent", key: "surplus", args: 1 }),
    );
    await run.write(ended("COMPLETED", { outcome: 1 }));
    await elapse(20);
    assert.equal(await store.intake.prune(tenant, await store.read.now(), 10), 0);
  });

  it("the feed continues after a prune without repeating a position", async () => {
    const { store, elapse } = fresh();
    const run = await begin(store);
    await run.write(step(0), step(1), decided("failed"), ended("FAILED"));
    const all = await collect(store, undefined, (records) => records.some(({ kind }) => kind === "run.ended"), elapse);
    await elapse(20);
    assert.equal(await store.intake.prune(tenant, await store.read.now(), 10), 1);
    const runSpec = spec();
    await store.intake.createRuns(tenant, [runSpec]);
    const isNew = (one: FeedRecord) => one.kind === "run.created" && one.data.id === runSpec.id;
    const rest = await collect(store, all.cursor, (records) => records.some(isNew), elapse);
    assert.deepEqual(
      rest.records.map(({ kind }) => kind),
      ["run.pruned", "run.created"],
    );
    const pruned = dataOf(rest.records[0], "run.pruned");
    assert.deepEqual([pruned.tenant, pruned.id], [tenant, run.id]);
    assert.ok(BigInt(pruned.token) > run.term.fence.token);
  });
};

type Records = readonly FeedRecord[];

/** Reads the feed from a cursor until the given record arrives: a feed may lag behind open transactions. */
async function collect(
  store: Store,
  cursor: string | undefined,
  enough: (records: Records) => boolean,
  elapse: (ms: number) => Promise<void>,
): Promise<{ records: Records; cursor: string | undefined }> {
  const records: FeedRecord[] = [];
  let next = cursor;
  for (let tries = 0; tries < 200; tries++) {
    const page = await store.read.feed(next, 3);
    records.push(...page.records);
    next = page.cursor;
    if (page.records.length === 0 && enough(records)) break;
    if (page.records.length === 0) await elapse(10);
  }
  return { records, cursor: next };
}

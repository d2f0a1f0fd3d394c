import { strict as assert } from "node:assert";
import { sinkLease } from "../../src/model/dead-letter.ts";
import type { Fence } from "../../src/model/fence.ts";
import { type RetentionPolicy, retentionLease } from "../../src/model/retention.ts";
import { checkpointText } from "../../src/model/sink-checkpoint.ts";
import type { DueTree, RetentionOps } from "../../src/store/contract/retention.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { acquired, type Cases, claimant, forged, record, refused, request, step, tenant, unique } from "./frame.ts";
import { begin, childEnded, confirmed, dataOf, ended, startChild, unchanged } from "./holder.ts";
import { lasting, preempting } from "./lease-fixtures.ts";

const start = { at: -1, journal: 0 };
const file = { archive: "acme/2026-01-01/a.jsonl.gz", sha256: "ab".repeat(32) };
const all: RetentionPolicy = { defaultMs: 10 };
const audit = { by: "ann", reason: "drill" };

async function leader(store: Store, of = tenant): Promise<Fence> {
  const req = request({ name: retentionLease }, { claimant: claimant(undefined, lasting) });
  return (await acquired(store, req, of)).fence;
}

async function endedRun(store: Store, more: object = {}) {
  const run = await begin(store);
  await run.write(step(0), ended("COMPLETED", { outcome: 1, ...more }));
  return run;
}

/** Everything that has ended is dated by the policy. */
async function dated(store: Store, ops: RetentionOps, fence: Fence, policy = all): Promise<void> {
  const now = await store.read.now();
  let after = start;
  for (;;) {
    const { next } = await ops.date(fence, policy, after, now + 1, 2);
    if (next === undefined) return;
    after = next;
  }
}

const idsOf = (trees: readonly DueTree[]): string[] => trees.flatMap(({ runs }) => runs.map(({ id }) => id)).sort();

/** Archiving and deleting ended runs; the store's epoch does not matter here. Behind a server the group is absent. */
export const retention: Cases = ({ it }, fresh) => {
  const withOps = (
    title: string,
    test: (store: Store, ops: RetentionOps, more: ReturnType<typeof fresh>) => Promise<void>,
  ) =>
    it(title, async () => {
      const fixture = fresh();
      const { retention: ops } = fixture.store;
      if (ops !== undefined) await test(fixture.store, ops, fixture);
    });

  withOps(
    "trees are due by the policy of their workflow, their code and the default",
    async (store, ops, { elapse }) => {
      const fence = await leader(store);
      const [plain, own] = [await endedRun(store), await endedRun(store, { retainMs: 50_000 })];
      const { workflow } = await plain.view();
      await elapse(20);
      const due = async (policy: RetentionPolicy): Promise<string[]> => {
        await dated(store, ops, fence, policy);
        return idsOf(await ops.due(tenant, await store.read.now(), 10));
      };
      assert.deepEqual(await due(all), [plain.id], "the code's setting wins over the default");
      assert.deepEqual(await due({}), []);
      assert.deepEqual(await due({ defaultMs: 60_000 }), []);
      assert.deepEqual(await due({ workflows: { [workflow]: 10 } }), [plain.id, own.id].sort(), "the operator's wins");
      assert.deepEqual(await due({ defaultMs: 1, workflows: { [workflow]: null } }), []);
      assert.deepEqual(await due({ defaultMs: 60_000, workflows: { other: 1 } }), []);
      const soon = await store.read.retention(tenant, 120_000);
      assert.deepEqual([soon.due, soon.workflows.map(({ trees }) => trees)], [2, [2]]);
    },
  );

  withOps("an archived tree leaves tombstones that name the file, and its records", async (store, ops, { elapse }) => {
    const fence = await leader(store);
    const parent = await begin(store);
    const child = await startChild(parent, 0, unique("child"));
    await childEnded(child, parent, 0, "COMPLETED", { outcome: 1 });
    await parent.write(ended("COMPLETED", { outcome: 1, notesTaken: 1 }));
    const live = await begin(store);
    await elapse(20);
    await dated(store, ops, fence);
    const trees = await ops.due(tenant, await store.read.now(), 10);
    assert.deepEqual(idsOf(trees), [parent.id, child.id].sort());
    const numbers = trees.flatMap(({ journals }) => journals.map(({ journal }) => journal));
    const raw = await ops.records(tenant, numbers, {});
    const journal = await store.read.journal(tenant, { run: parent.id });
    assert.equal(raw.filter((one) => one.journal === parent.journal).length, journal.length);
    assert.equal(raw.find((one) => one.journal === parent.journal)!.kind, "run.created");
    assert.equal(await ops.prune(fence, trees, file, "state"), 2);
    assert.equal(await store.read.run(tenant, child.id), undefined);
    const archived = await store.read.archived(tenant);
    assert.deepEqual(
      archived.map(({ id, archive }) => [id, archive]),
      [parent.id, child.id].sort().map((id) => [id, file.archive]),
    );
    assert.deepEqual((await store.read.archived(tenant, { id: child.id })).length, 1);
    assert.equal((await store.read.lease(tenant, { name: retentionLease }))?.checkpoint, "state");
    assert.deepEqual(await ops.due(tenant, Number.MAX_SAFE_INTEGER, 10), []);
    let cursor: string | undefined;
    const kinds: string[] = [];
    for (let page = await store.read.feed(cursor, 500, tenant); ; page = await store.read.feed(cursor, 500, tenant)) {
      for (const one of page.records) if (one.kind === "run.pruned") kinds.push(dataOf(one, "run.pruned").sha256!);
      ({ cursor } = page);
      if (page.records.length === 0 && page.more !== true) break;
    }
    assert.ok(kinds.every((sha256) => sha256 === file.sha256));
    await live.write(step(0));
    await refused("TAPE_RUN_NOT_FOUND", store.claim.acquire(tenant, request({ run: parent.id })));
  });

  withOps("what changed since it was read is not deleted, nor anything with it", async (store, ops, { elapse }) => {
    const fence = await leader(store);
    const [a, b] = [await endedRun(store), await endedRun(store)];
    await elapse(20);
    await dated(store, ops, fence);
    const trees = await ops.due(tenant, await store.read.now(), 10);
    const short = trees.map((tree, k) =>
      k === 0 ? tree : { ...tree, journals: tree.journals.map((one) => ({ ...one, seq: one.seq - 1 })) },
    );
    await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", ops.prune(fence, short, file, "state")));
    await store.intake.prune(tenant, await store.read.now(), 1);
    const left = (await store.read.run(tenant, a.id)) === undefined ? b : a;
    await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", ops.prune(fence, trees, file, "state")));
    assert.notEqual(await store.read.run(tenant, left.id), undefined);
    assert.deepEqual(idsOf(await ops.due(tenant, await store.read.now(), 10)), [left.id]);
  });

  withOps("a tree with a live run, an open obligation or a late sink stays", async (store, ops, { elapse }) => {
    const fence = await leader(store);
    const owing = await begin(store);
    await owing.write(
      ...confirmed(0),
      record("obligation.surplus", { pos: 0, sub: 2, semantics: "non_idempotent", key: "surplus", args: 1 }),
      ended("COMPLETED", { outcome: 1 }),
    );
    const free = await endedRun(store);
    const sink = await acquired(
      store,
      request({ name: sinkLease(unique("sink")) }, { claimant: claimant(undefined, lasting) }),
    );
    await store.fenced.checkpoint(sink.fence, checkpointText({ cursor: null, at: 0, epoch: 0 }));
    await elapse(20);
    await dated(store, ops, fence);
    const keptOf = async (): Promise<Record<string, string | undefined>> =>
      Object.fromEntries(
        (await ops.due(tenant, await store.read.now(), 10)).map(({ runs, kept }) => [runs[0]!.id, kept]),
      );
    assert.deepEqual(await keptOf(), { [owing.id]: "unsettled", [free.id]: "sink" });
    const trees = await ops.due(tenant, await store.read.now(), 10);
    await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", ops.prune(fence, trees, file, "state")));
    await store.fenced.checkpoint(sink.fence, null);
    assert.deepEqual(await keptOf(), { [owing.id]: "unsettled", [free.id]: undefined });
    await ops.postpone(fence, [owing.journal], 60_000);
    assert.deepEqual(await keptOf(), { [free.id]: undefined });
  });

  withOps("only the holder of the lease dates, postpones and deletes", async (store, ops, { elapse }) => {
    const stale = await leader(store);
    const run = await endedRun(store);
    await elapse(20);
    await dated(store, ops, stale);
    const trees = await ops.due(tenant, await store.read.now(), 10);
    const next = await acquired(
      store,
      request({ name: retentionLease }, { claimant: claimant(undefined, lasting), ...preempting }),
    );
    const other = await acquired(store, request({ name: unique("other") }, { claimant: claimant(undefined, lasting) }));
    await unchanged(store, async () => {
      for (const fence of [stale, forged(next, { nonce: 1n }), forged(next, { tenant: "globex" })]) {
        await refused("TAPE_FENCED", ops.prune(fence, trees, file, "state"));
        await refused("TAPE_FENCED", ops.date(fence, all, start, 1));
        await refused("TAPE_FENCED", ops.postpone(fence, [run.journal], 1));
      }
      await refused("TAPE_BAD_INPUT", ops.prune(other.fence, trees, file, "state"));
      await refused("TAPE_FENCED", ops.prune(run.term.fence, trees, file, "state"));
    });
    assert.equal(await ops.prune(next.fence, trees, file, "state"), 1);
  });

  withOps("[INV-12] a tenant dates, reads and deletes only its own runs", async (store, ops, { elapse }) => {
    const run = await endedRun(store);
    const mine = await leader(store);
    const foreign = await leader(store, "globex");
    await elapse(20);
    await dated(store, ops, mine);
    await ops.date(foreign, all, start, (await store.read.now()) + 1);
    const now = await store.read.now();
    assert.deepEqual(await ops.due("globex", now, 10), []);
    const trees = await ops.due(tenant, now, 10);
    assert.deepEqual(idsOf(trees), [run.id]);
    assert.deepEqual(await ops.records("globex", [run.journal], {}), []);
    await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", ops.prune(foreign, trees, file, "state")), "globex");
    await ops.postpone(foreign, [run.journal], 60_000);
    assert.equal((await ops.due(tenant, now, 10)).length, 1);
    assert.equal(await ops.prune(mine, trees, file, "state"), 1);
    assert.deepEqual(await store.read.archived("globex"), []);
  });

  withOps("bad arguments are refused before anything is written", async (store, ops) => {
    const fence = await leader(store);
    await unchanged(store, async () => {
      await refused("TAPE_BAD_INPUT", ops.due(tenant, 1.5, 10));
      await refused("TAPE_BAD_INPUT", ops.due(tenant, 1, 0));
      await refused("TAPE_TOO_LARGE", ops.due(tenant, 1, 1_000_000));
      await refused("TAPE_BAD_INPUT", ops.date(fence, { defaultMs: -1 }, start, 1));
      await refused("TAPE_BAD_INPUT", ops.postpone(fence, [0.5], 1));
      await refused("TAPE_BAD_INPUT", store.read.retention(tenant, -1));
    });
  });

  it("a request for a pass is audited", async () => {
    const { store } = fresh();
    await store.intake.requestRetention(tenant, audit);
    const [entry] = await store.read.audit(tenant, { limit: 1 });
    assert.deepEqual([entry?.action, entry?.by], ["retention.run", "ann"]);
  });
};

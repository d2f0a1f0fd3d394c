import { afterAll, beforeAll, expect, inject, it } from "vitest";
import type { Store } from "../../../src/store/contract/store.ts";
import { openPostgres } from "../../../src/store/postgres/open.ts";
import { record, step, tenant, unique } from "../../../testkit/conformance/frame.ts";
import { begin, childEnded, type Holder, hold } from "../../../testkit/conformance/holder.ts";
import { checkProjection } from "../../../testkit/projection.ts";
import { codeOf, type Scene, sceneOn } from "./scene.ts";

/** Children of one run start in one statement, and end in batches that share the lock of its inbox. */
let scene: Scene;
let store: Store;
let another: Store;

beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
  ({ store } = scene);
  another = await openPostgres({ url: scene.url });
});
afterAll(async () => {
  await another.close();
  await scene.close();
});

const started = (pos: number, id: string) =>
  record("child.started", { pos, id, workflow: "w", input: { pos }, inputHash: "h" });

const inboxOf = (parent: Holder) =>
  scene.store.read.journal(tenant, { journal: parent.journal }, { inbox: true, limit: 1_000 });

it("[INV-1] children that end at once in two processes leave one dense inbox, in the order of the feed", async () => {
  const parents = [await begin(store), await begin(store)];
  const count = 60;
  const ends = parents.flatMap((parent) =>
    Array.from({ length: count }, (_, pos) => ({ parent, pos, id: unique("c") })),
  );
  for (const parent of parents) {
    const own = ends.filter((one) => one.parent === parent);
    await parent.write(step(0), ...own.map(({ pos, id }) => started(pos + 1, id)));
  }
  const holders = await Promise.all(ends.map(({ id }, k) => hold(k % 2 === 0 ? store : another, id)));
  await Promise.all(
    holders.map((child, k) => childEnded(child, ends[k]!.parent, ends[k]!.pos + 1, "COMPLETED", { outcome: k })),
  );
  for (const parent of parents) {
    const notes = await inboxOf(parent);
    expect(notes.map(({ seq }) => seq)).toEqual(Array.from({ length: count }, (_, k) => k + 1));
    const outcomes = notes.map(({ data }) => (data as { outcome: number }).outcome);
    expect(new Set(outcomes).size).toBe(count);
    const { rows } = await scene.admin.query("select stamp from tape.records where journal = $1 order by seq", [
      -parent.journal,
    ]);
    const stamps = rows.map((row) => Number((row as { stamp: string }).stamp));
    expect(stamps).toEqual(stamps.toSorted((a, b) => a - b));
  }
  // The feed waits for open transactions, also for those of other tests on the same server.
  await expect.poll(() => checkProjection(scene.store, [tenant]), { timeout: 10_000 }).toEqual([]);
});

it("[INV-6] an entry of which one id is taken starts no child, beside one that starts all of its children", async () => {
  const [one, two] = [await begin(store), await begin(store)];
  const [fresh, free] = [unique("c"), unique("c")];
  const results = await Promise.allSettled([
    one.write(started(1, fresh), started(2, two.id)),
    two.write(started(1, free)),
  ]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "fulfilled"]);
  expect(await codeOf(Promise.reject((results[0] as PromiseRejectedResult).reason))).toBe("TAPE_RUN_CONFLICT");
  expect(await store.read.run(tenant, fresh)).toBeUndefined();
  expect(await store.read.run(tenant, free)).toMatchObject({ status: "RUNNABLE", parent: two.journal });
  // The feed waits for open transactions, also for those of other tests on the same server.
  await expect.poll(() => checkProjection(scene.store, [tenant]), { timeout: 10_000 }).toEqual([]);
});

it("a child of a run that has ended meanwhile ends without a note", async () => {
  const parent = await begin(store);
  const id = unique("c");
  await parent.write(started(1, id));
  const child = await hold(store, id);
  await scene.admin.query("update tape.leases set open = false where journal = $1", [parent.journal]);
  await childEnded(child, parent, 1, "COMPLETED", { outcome: 1 });
  expect(await store.read.run(tenant, id)).toMatchObject({ status: "COMPLETED" });
  expect(await inboxOf(parent)).toEqual([]);
});

import { strict as assert } from "node:assert";
import type { EffectFilter, Store } from "../../src/store/contract/store.ts";
import { effectCursor } from "../../src/store/list-cursors.ts";
import { type Cases, refused, tenant } from "./frame.ts";
import { armed, begin, confirmed, decided, dispatched, ended, intent, settled } from "./holder.ts";

/** Reads page by page, with this many rows each: `run index.pos.sub` of every row. */
async function paged(store: Store, filter: EffectFilter, runs: readonly number[], limit: number): Promise<string[]> {
  const seen: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await store.read.effects(tenant, { ...filter, limit, ...(after === undefined ? {} : { after }) });
    assert.ok(page.length <= limit);
    seen.push(...page.map(({ run, pos, sub }) => `${runs.indexOf(run)}.${pos}.${sub}`));
    assert.ok(seen.length < 1_000, "the pages do not end");
    if (page.more !== true) return seen;
    after = effectCursor(page.at(-1)!);
  }
}

/** What views of runs and of effects show to operators, beside what the engine needs. */
export const views: Cases = ({ it }, fresh) => {
  it("a run that failed has its error in every view, and one that completed has none", async () => {
    const { store } = fresh();
    const failed = await begin(store);
    const refusal = Object.assign(new RangeError("card expired"), { code: "CARD_EXPIRED" });
    await failed.write(ended("FAILED", { outcome: refusal }));
    const cancelled = await begin(store);
    await cancelled.write(ended("CANCELLED", { outcome: new Error("enough") }));
    const ending = await begin(store);
    await ending.write(decided("failed", { thrown: "an object" }));
    const completed = await begin(store);
    await completed.write(ended("COMPLETED", { outcome: new Error("a value like any other") }));
    const expected = new Map([
      [failed.id, { name: "RangeError", message: "card expired", code: "CARD_EXPIRED" }],
      [cancelled.id, { name: "Error", message: "enough" }],
      [ending.id, { name: "Error", message: '{"thrown":"an object"}' }],
    ]);
    const ids = [failed.id, cancelled.id, ending.id, completed.id];
    const listed = await store.read.runs(tenant);
    assert.equal(listed.length, ids.length);
    for (const run of listed) {
      assert.deepEqual(run.error, expected.get(run.id), run.status);
      assert.deepEqual((await store.read.run(tenant, run.id))?.error, run.error);
    }
    assert.equal("error" in (await completed.view()), false);
    for (const run of await store.read.progress(tenant, ids)) {
      if (run.ended) assert.deepEqual(run.error, expected.get(run.id), run.status);
    }
  });

  it("the error in a view is bounded, and its outcome is whole", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const text = `${"x".repeat(998)}\u{1f600}${"y".repeat(5_000)}`; // a surrogate pair at the cut
    await run.write(ended("FAILED", { outcome: Object.assign(new Error(text), { code: "c".repeat(5_000) }) }));
    const { error, outcome } = await run.view();
    assert.equal(error?.message.length, 1_000);
    assert.ok(error.message.isWellFormed());
    assert.equal(error.code?.length, 100);
    assert.equal((outcome as Error).message, text);
  });

  it("effects are listed newest first, page by page, of all runs or of one", async () => {
    const { store } = fresh();
    const runs = [await begin(store), await begin(store), await begin(store)];
    await runs[2]!.write(...confirmed(0), ...confirmed(7));
    await runs[0]!.write(...confirmed(0), armed(0), ...confirmed(1), intent(2));
    await runs[1]!.write(
      intent(0, { semantics: "non_idempotent" }),
      dispatched(0),
      settled(0, "UNKNOWN", { reason: "ack_lost" }),
      ...confirmed(1),
      intent(2),
    );
    const journals = runs.map(({ journal }) => journal);
    const all = ["2.7.0", "2.0.0", "1.2.0", "1.1.0", "1.0.0", "0.2.0", "0.1.0", "0.0.1", "0.0.0"];
    const pending = ["1.2.0", "0.2.0"];
    const ofFirst = ["0.2.0", "0.1.0", "0.0.1", "0.0.0"];
    const table: [EffectFilter, string[]][] = [
      [{}, all],
      [{ role: "compensation" }, ["0.0.1"]],
      [{ status: ["CONFIRMED"] }, ["2.7.0", "2.0.0", "1.1.0", "0.1.0", "0.0.0"]],
      [{ status: ["PENDING"] }, pending],
      [{ status: ["UNKNOWN", "STUCK"] }, ["1.0.0"]],
      [{ status: ["PENDING", "UNKNOWN"], role: "effect" }, ["1.2.0", "1.0.0", "0.2.0"]],
      [{ status: ["PENDING", "CONFIRMED"], run: runs[0]!.id }, ["0.2.0", "0.1.0", "0.0.0"]],
      [{ run: runs[0]!.id }, ofFirst],
      [{ run: runs[0]!.id, role: "compensation" }, ["0.0.1"]],
      [{ status: ["PENDING"], minAgeMs: 3_600_000 }, []],
    ];
    for (const [filter, expected] of table) {
      for (const limit of [1, 2, 100]) {
        const found = await paged(store, { ...filter, order: "desc" }, journals, limit);
        assert.deepEqual(found, expected, `${JSON.stringify(filter)} by ${limit}`);
      }
    }
    assert.deepEqual(await paged(store, { order: "asc" }, journals, 2), all.toReversed());
    assert.deepEqual(await store.read.effects("globex", { order: "desc" }), []);
    assert.deepEqual(await store.read.effects("globex", { order: "desc", run: runs[0]!.id }), []);
    assert.deepEqual(await store.read.effects("globex", { order: "desc", status: ["PENDING"] }), []);
  });

  it("the newest effects are not listed of a tree, of an item or from a position", async () => {
    const { store } = fresh();
    const run = await begin(store);
    for (const more of [{ root: run.journal }, { item: 7 }, { run: run.id, from: 1 }]) {
      await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { ...more, order: "desc" }));
    }
    await refused("TAPE_BAD_INPUT", store.read.effects(tenant, { order: "newest" as never }));
  });
};

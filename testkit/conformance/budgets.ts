import { strict as assert } from "node:assert";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import { type Cases, record, spec, step, tenant, unique } from "./frame.ts";
import { begin, countOutcomes, startChild, unchanged } from "./holder.ts";

const reserve = (of: number, amounts: Record<string, number>, pos = 0): NewRecord =>
  record("budget.reserved", { pos, rootRun: of, amounts });
const charge = (of: number, spent: Record<string, number>, reserved: Record<string, number>, pos = 0): NewRecord =>
  record("budget.charged", { pos, rootRun: of, spent, reserved });

async function budget(store: Store, id: string): Promise<Record<string, (number | null)[]>> {
  const rows = await store.read.budgets(tenant, id);
  return Object.fromEntries(rows.map(({ unit, cap, reserved, spent }) => [unit, [cap, reserved, spent]]));
}

/** Budgets: reserved plus spent amounts never exceed the cap, also under concurrency. */
export const budgets: Cases = ({ it }, fresh) => {
  it("a charge releases the rest of its reservation", async () => {
    const { store } = fresh();
    const run = await begin(store, { budget: { usd: 100, tokens: 1_000 } });
    const own = run.journal;
    await run.write(reserve(own, { usd: 60, tokens: 10 }));
    assert.deepEqual(await budget(store, run.id), { tokens: [1_000, 10, 0], usd: [100, 60, 0] });
    await run.write(charge(own, { usd: 45 }, { usd: 60 }), charge(own, {}, { tokens: 10 }));
    assert.deepEqual(await budget(store, run.id), { tokens: [1_000, 0, 0], usd: [100, 0, 45] });
    await run.write(reserve(own, { usd: 55 }));
    await unchanged(store, async () => {
      await run.refused("TAPE_BUDGET_EXCEEDED", step(0), reserve(own, { usd: 1 }));
      await run.refused("TAPE_BUDGET_EXCEEDED", reserve(own, { tokens: 5, usd: 1 }));
      await run.refused("TAPE_BUDGET_EXCEEDED", charge(own, { euros: 1 }, { euros: 1 }));
      await run.refused("TAPE_BUDGET_EXCEEDED", charge(own, { usd: 1 }, { usd: 56 }));
    });
    await run.write(charge(own, { usd: 55 }, { usd: 55 }));
    assert.deepEqual(await budget(store, run.id), { tokens: [1_000, 0, 0], usd: [100, 0, 100] });
    await unchanged(store, () => run.refused("TAPE_BUDGET_EXCEEDED", reserve(own, { usd: 1 })));
    await run.write(reserve(own, { usd: 0 }));
  });

  it("a charge may exceed its reservation, and the next reservation is refused", async () => {
    const { store } = fresh();
    const run = await begin(store, { budget: { usd: 100 } });
    await run.write(reserve(run.journal, { usd: 90 }));
    await run.write(charge(run.journal, { usd: 120 }, { usd: 90 }));
    assert.deepEqual(await budget(store, run.id), { usd: [100, 0, 120] });
    await unchanged(store, () => run.refused("TAPE_BUDGET_EXCEEDED", reserve(run.journal, { usd: 1 })));
  });

  it("a unit without a cap is counted, reserved or not", async () => {
    const { store } = fresh();
    const [run, plain] = [await begin(store, { budget: { usd: 100 } }), await begin(store)];
    await run.write(reserve(run.journal, { tokens: 70, usd: 10 }));
    await run.write(charge(run.journal, { tokens: 90, calls: 1, usd: 4 }, { tokens: 70, usd: 10 }));
    await plain.write(reserve(plain.journal, { usd: 5_000 }));
    const child = await startChild(run, 0, unique("child"));
    await child.write(reserve(run.journal, { tokens: 8 }));
    const counted = { calls: [null, 0, 1], tokens: [null, 8, 90], usd: [100, 0, 4] };
    assert.deepEqual(await budget(store, run.id), counted);
    const { budgets: rows, units } = await store.read.spend(tenant);
    assert.deepEqual(rows.map(({ unit, cap }) => [unit, cap]).at(0), ["usd", 100]);
    assert.deepEqual(units, [
      { unit: "calls", runs: 1, cap: null, reserved: 0, spent: 1 },
      { unit: "tokens", runs: 1, cap: null, reserved: 8, spent: 90 },
      { unit: "usd", runs: 1, cap: 100, reserved: 0, spent: 4 },
      { unit: "usd", runs: 1, cap: null, reserved: 5_000, spent: 0 },
    ]);
    await unchanged(store, async () => {
      await run.refused("TAPE_BUDGET_EXCEEDED", charge(run.journal, {}, { tokens: 9 }));
      await run.refused("TAPE_BUDGET_EXCEEDED", reserve(run.journal, { tokens: Number.MAX_SAFE_INTEGER }));
    });
    assert.deepEqual(await checkProjection(store, [tenant]), []);
  });

  it("a presumed cost counts as spent, beyond the cap too, and leaves the reservation open", async () => {
    const { store } = fresh();
    const run = await begin(store, { budget: { usd: 100 } });
    const presumed = record("budget.presumed", { pos: 0, rootRun: run.journal, amounts: { usd: 60 } });
    await run.write(reserve(run.journal, { usd: 60 }));
    await run.write(presumed);
    await run.write(presumed);
    assert.deepEqual(await budget(store, run.id), { usd: [100, 60, 120] });
    await run.write(charge(run.journal, { usd: 5 }, { usd: 60 }));
    assert.deepEqual(await budget(store, run.id), { usd: [100, 0, 125] });
    await unchanged(store, () => run.refused("TAPE_BUDGET_EXCEEDED", reserve(run.journal, { usd: 1 })));
    assert.deepEqual(await checkProjection(store, [tenant]), []);
  });

  it("the units of a tree are bounded, also those without a cap", async () => {
    const { store } = fresh();
    const { budgetUnits } = store.limits;
    const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, k) => [`unit-${k}`, 1]));
    const run = await begin(store, { budget: { usd: 5 } });
    const [child, stranger] = [await startChild(run, 0, unique("child")), await begin(store)];
    await run.write(reserve(run.journal, many(budgetUnits - 1)));
    await unchanged(store, async () => {
      await run.refused("TAPE_TOO_LARGE", step(0), reserve(run.journal, { another: 1 }));
      await child.refused("TAPE_TOO_LARGE", charge(run.journal, { another: 1, usd: 1 }, {}));
      await stranger.refused("TAPE_BUDGET_EXCEEDED", reserve(run.journal, { another: 1 }));
      const tooMany = [spec({ budget: many(budgetUnits + 1) })];
      const [result] = await store.intake.createRuns(tenant, tooMany);
      assert.equal(result?.ok === false && result.error.code, "TAPE_TOO_LARGE");
    });
    await child.write(charge(run.journal, { usd: 1 }, { "unit-0": 1 }));
  });

  it("amounts stay safe integers, per run and in totals", async () => {
    const { store } = fresh();
    const max = Number.MAX_SAFE_INTEGER;
    const [run, other] = [await begin(store, { budget: { usd: max } }), await begin(store, { budget: { usd: max } })];
    await run.write(charge(run.journal, { usd: max }, {}), charge(run.journal, { usd: max }, {}, 1));
    await other.write(reserve(other.journal, { usd: max }));
    // What one call of a model reserves: 4,096 tokens in millionths do not fit into 32 bits.
    await other.write(charge(other.journal, {}, { usd: max }), reserve(other.journal, { usd: max }, 1));
    assert.deepEqual(await budget(store, other.id), { usd: [max, max, 0] });
    assert.deepEqual(await budget(store, run.id), { usd: [max, 0, max] });
    const { units } = await store.read.spend(tenant);
    assert.deepEqual(units, [{ unit: "usd", runs: 2, cap: max, reserved: max, spent: max }]);
  });

  it("ten children that reserve concurrently cannot exceed their root's cap", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    const root = await begin(store, { budget: { usd: 50 } });
    const children = [];
    for (let pos = 0; pos < 10; pos++) children.push(await startChild(root, pos, unique("child")));
    const outcomes = await Promise.all(
      children.flatMap((child, k) =>
        clients[k % 2]!.fenced.append(child.term.fence, {
          after: child.head,
          records: [reserve(root.journal, { usd: 7 })],
        }).then(
          () => "reserved",
          (error: { code?: string }) => error.code,
        ),
      ),
    );
    assert.deepEqual(countOutcomes(outcomes), { reserved: 7, TAPE_BUDGET_EXCEEDED: 3 });
    assert.deepEqual(await budget(store, root.id), { usd: [50, 49, 0] });
  });

  it("another tree can neither reserve nor charge", async () => {
    const { store } = fresh();
    const root = await begin(store, { budget: { usd: 50 } });
    await root.write(reserve(root.journal, { usd: 10 }));
    const stranger = await begin(store, { budget: { usd: 50 } });
    await unchanged(store, async () => {
      await stranger.refused("TAPE_BUDGET_EXCEEDED", reserve(root.journal, { usd: 1 }));
      await stranger.refused("TAPE_BUDGET_EXCEEDED", charge(root.journal, {}, { usd: 10 }));
    });
    const child = await startChild(root, 0, unique("child"));
    await child.write(charge(root.journal, { usd: 4 }, { usd: 10 }));
    assert.deepEqual(await budget(store, root.id), { usd: [50, 0, 4] });
    assert.deepEqual(await store.read.budgets("globex", root.id), []);
    assert.deepEqual(await store.read.budgets(tenant, "nobody"), []);
  });

  it("a cap near 2^53 is exact", async () => {
    const { store } = fresh();
    const cap = Number.MAX_SAFE_INTEGER;
    const run = await begin(store, { budget: { usd: cap } });
    await run.write(reserve(run.journal, { usd: cap - 1 }));
    await unchanged(store, () => run.refused("TAPE_BUDGET_EXCEEDED", reserve(run.journal, { usd: 2 })));
    await run.write(reserve(run.journal, { usd: 1 }));
    assert.deepEqual(await budget(store, run.id), { usd: [cap, cap, 0] });
  });
};

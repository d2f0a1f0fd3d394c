import { strict as assert } from "node:assert";
import type { NewRecord, RecordData } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { checkProjection } from "../projection.ts";
import { type Cases, record, refused, spec, step, tenant, unique } from "./frame.ts";
import { begin, countOutcomes, startChild, unchanged } from "./holder.ts";

const written = (key: string, version: number, more: Partial<RecordData<"value.written">> = {}): NewRecord =>
  record("value.written", { key, version, value: version, ...more });

async function current(store: Store, key: string): Promise<unknown[] | undefined> {
  const found = await store.read.value(tenant, key);
  return found === undefined ? undefined : [found.version, found.value, found.deleted];
}

/** Values: compare-and-set on a version that only increases. */
export const values: Cases = ({ it }, fresh) => {
  it("a write needs no value, a matching version, or no condition", async () => {
    const { store } = fresh();
    const put = (value: unknown, when: Parameters<Store["intake"]["putValue"]>[3]) =>
      store.intake.putValue(tenant, "k", value, when);
    assert.equal(await store.read.value(tenant, "k"), undefined);
    await unchanged(store, () => refused("TAPE_VERSION_CONFLICT", put(0, { version: 1 })));
    const first = await put({ a: 1n }, "must_create");
    assert.deepEqual([first.key, first.version, first.value, first.deleted], ["k", 1, { a: 1n }, false]);
    await unchanged(store, async () => {
      const { details } = await refused("TAPE_VERSION_CONFLICT", put(2, "must_create"));
      assert.equal(details.version, 1);
      await refused("TAPE_VERSION_CONFLICT", put(2, { version: 0 }));
      await refused("TAPE_VERSION_CONFLICT", put(2, { version: 2 }));
    });
    assert.equal((await put(2, { version: 1 })).version, 2);
    assert.equal((await put(undefined, "unconditional")).version, 3);
    assert.deepEqual(await current(store, "k"), [3, undefined, false], "undefined is a value");
    assert.equal((await store.intake.putValue(tenant, "fresh", 1, "unconditional")).version, 1);
    assert.equal((await store.intake.putValue(tenant, "zero", 1, { version: 0 })).version, 1, "0: it never existed");
  });

  it("versions continue to increase across deletion and creation", async () => {
    const { store } = fresh();
    await store.intake.putValue(tenant, "k", "a", "must_create");
    await unchanged(store, async () => {
      await refused("TAPE_VERSION_CONFLICT", store.intake.deleteValue(tenant, "k", 2));
      await refused("TAPE_VERSION_CONFLICT", store.intake.deleteValue(tenant, "none", 1));
    });
    const gone = await store.intake.deleteValue(tenant, "k", 1);
    assert.deepEqual([gone.version, gone.value, gone.deleted], [2, undefined, true]);
    assert.deepEqual(await current(store, "k"), [2, undefined, true]);
    assert.deepEqual(await store.read.values(tenant, ""), []);
    await unchanged(store, async () => {
      await refused("TAPE_VERSION_CONFLICT", store.intake.putValue(tenant, "k", "b", { version: 1 }));
      await refused("TAPE_VERSION_CONFLICT", store.intake.putValue(tenant, "k", "b", { version: 0 }));
    });
    assert.equal((await store.intake.putValue(tenant, "k", "b", "must_create")).version, 3);
    assert.deepEqual(await current(store, "k"), [3, "b", false]);
    const history = await store.read.valueHistory(tenant, "k", 0);
    assert.deepEqual(
      history.map(({ version, value, deleted }) => [version, value, deleted]),
      [
        [2, undefined, true],
        [3, "b", false],
      ],
    );
  });

  it("a deletion also erases the history, also from inside a run", async () => {
    const { store } = fresh();
    const seen = async (key: string, after: number) =>
      (await store.read.valueHistory(tenant, key, after)).map(({ version, value }) => [version, value]);
    for (const version of [0, 1, 2]) await store.intake.putValue(tenant, "k", `secret ${version}`, { version });
    await store.intake.putValue(tenant, "k.other", "kept", "must_create");
    assert.equal((await seen("k", 0)).length, 3);
    await store.intake.deleteValue(tenant, "k", 3);
    for (const after of [0, 1, 2, 3])
      assert.deepEqual(await seen("k", after), [[4, undefined]], "for readers that lag behind");
    assert.deepEqual(await seen("k", 4), []);
    await store.intake.putValue(tenant, "k", "again", "must_create");
    assert.deepEqual(await seen("k", 1), [
      [4, undefined],
      [5, "again"],
    ]);
    const run = await begin(store);
    await run.write(written("r", 1, { value: "secret" }), written("r", 2, { value: "secret" }));
    await run.write(written("r", 3, { deleted: true }));
    assert.deepEqual(await seen("r", 0), [[3, undefined]]);
    assert.deepEqual(await seen("k.other", 0), [[1, "kept"]]);
  });

  it("a budget unit may be named like an inherited property of objects", async () => {
    const { store } = fresh();
    const units = ["toString", "constructor", "hasOwnProperty", "valueOf"];
    const run = await begin(store, { budget: Object.fromEntries([...units, "usd"].map((unit) => [unit, 10])) });
    const of = run.journal;
    await run.write(record("budget.reserved", { pos: 0, rootRun: of, amounts: { toString: 3, usd: 2 } as never }));
    // The charge names other units than the reservation: missing units count as nothing, not as a function.
    await run.write(
      record("budget.charged", { pos: 0, rootRun: of, spent: { usd: 1 }, reserved: { toString: 3, usd: 2 } as never }),
    );
    await run.write(
      record("budget.charged", { pos: 1, rootRun: of, spent: { constructor: 4 } as never, reserved: {} }),
    );
    const { budgets } = await store.read.spend(tenant);
    const seen = budgets.map(({ unit, reserved, spent }) => [unit, reserved, spent]);
    assert.deepEqual(seen.sort(), [["constructor", 0, 4], ["hasOwnProperty", 0, 0], ["toString", 0, 0], ["usd", 0, 1], ["valueOf", 0, 0]]); // biome-ignore format: a line
    await run.refused(
      "TAPE_BUDGET_EXCEEDED",
      record("budget.reserved", { pos: 2, rootRun: of, amounts: { constructor: 7 } as never }),
    );
  });

  it("of clients that race for a version exactly one wins", async () => {
    const { store, another } = fresh();
    const clients = [store, await another(), store, await another()];
    const won: number[] = [];
    await store.intake.putValue(tenant, "counter", 0, "must_create");
    for (let version = 1; version <= 15; version++) {
      const tries = clients.map((client, k) =>
        client.intake.putValue(tenant, "counter", k, { version }).then(
          () => k,
          (error: { code?: string }) => error.code,
        ),
      );
      const outcomes = await Promise.all(tries);
      const winner = outcomes.find((outcome) => typeof outcome === "number") as number;
      assert.deepEqual(countOutcomes(outcomes), { [winner]: 1, TAPE_VERSION_CONFLICT: 3 });
      assert.deepEqual(await current(store, "counter"), [version + 1, winner, false]);
      won.push(winner);
    }
    const history = await store.read.valueHistory(tenant, "counter", 1);
    assert.deepEqual(
      history.map(({ value }) => value),
      won,
    );
    const births = await Promise.all(
      clients.map((client, k) =>
        client.intake.putValue(tenant, "born", k, "must_create").then(
          () => "born",
          (error: { code?: string }) => error.code,
        ),
      ),
    );
    assert.deepEqual(countOutcomes(births), { born: 1, TAPE_VERSION_CONFLICT: 3 });
  });

  it("concurrent unconditional writes all succeed, each with its own version", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    const puts = Array.from({ length: 24 }, (_, k) =>
      clients[k % 2]!.intake.putValue(tenant, "hot", k, "unconditional"),
    );
    const versions = (await Promise.all(puts)).map(({ version }) => version);
    assert.deepEqual(
      versions.sort((a, b) => a - b),
      versions.map((_, k) => k + 1),
    );
  });

  it("a value write inside a run is fenced and compared with its append", async () => {
    const { store } = fresh();
    const run = await begin(store);
    await run.write(step(0), written("k", 1), written("other", 1, { value: { a: 2n } }));
    assert.deepEqual(await current(store, "k"), [1, 1, false]);
    assert.deepEqual(await current(store, "other"), [1, { a: 2n }, false]);
    await unchanged(store, async () => {
      for (const version of [0, 1, 3]) await run.refused("TAPE_VERSION_CONFLICT", step(1), written("k", version));
      await run.refused("TAPE_VERSION_CONFLICT", written("k", 2), written("k", 2));
      await run.refused("TAPE_VERSION_CONFLICT", written("new", 2));
    });
    await run.write(written("k", 2), written("k", 3, { deleted: true }));
    assert.deepEqual(await current(store, "k"), [3, undefined, true]);
    await store.intake.putValue(tenant, "k", "outside", { version: 3 });
    await unchanged(store, () => run.refused("TAPE_VERSION_CONFLICT", written("k", 4)));
    await run.write(written("k", 5));
    await run.release();
    await unchanged(store, () => run.refused("TAPE_FENCED", written("k", 6)));
    const history = await store.read.valueHistory(tenant, "k", 2);
    assert.deepEqual(
      history.map(({ version, value, deleted }) => [version, value, deleted]),
      [
        [3, undefined, true],
        [4, "outside", false],
        [5, 5, false],
      ],
    );
  });

  it("the history resumes by version, and fails once compacted beyond it", async () => {
    const { store } = fresh();
    const run = await begin(store);
    const kept = store.limits.valueHistory;
    const max = Math.min(store.limits.appendRecords, 500);
    for (let from = 1; from <= kept + 5; from += max) {
      const size = Math.min(max, kept + 6 - from);
      await run.write(...Array.from({ length: size }, (_, k) => written("long", from + k)));
    }
    const compacted = await refused("TAPE_VALUE_COMPACTED", store.read.valueHistory(tenant, "long", 4));
    assert.equal(compacted.details.oldest, 6);
    await refused("TAPE_VALUE_COMPACTED", store.read.valueHistory(tenant, "long", 0, 1));
    const seen: number[] = [];
    for (let after = 5; ; after = seen.at(-1)!) {
      const page = await store.read.valueHistory(tenant, "long", after, 300);
      if (page.length === 0) break;
      seen.push(...page.map(({ version }) => version));
    }
    assert.equal(seen.length, kept);
    assert.deepEqual([seen[0], seen.at(-1)], [6, kept + 5]);
    assert.deepEqual(await store.read.valueHistory(tenant, "long", kept + 5), []);
    assert.deepEqual(await store.read.valueHistory(tenant, "none", 0), []);
  });

  it("a prefix is matched literally", async () => {
    const { store } = fresh();
    const keys = ["a%b", "a_b", "axb", "a\\b", "a*b", "a?b", "a[b", "ä", "a", "A", "😀x", "a%", "'; drop table x; --"];
    for (const key of keys) await store.intake.putValue(tenant, key, key, "must_create");
    const table: [string, string[]][] = [
      ["", keys],
      ["a%", ["a%", "a%b"]],
      ["a_", ["a_b"]],
      ["a\\", ["a\\b"]],
      ["a*", ["a*b"]],
      ["a[", ["a[b"]],
      ["A", ["A"]],
      ["ä", ["ä"]],
      ["😀", ["😀x"]],
      ["'", ["'; drop table x; --"]],
      ["%", []],
    ];
    for (const [prefix, expected] of table) {
      const found = (await store.read.values(tenant, prefix)).map(({ key }) => key);
      assert.deepEqual(found.sort(), [...expected].sort(), prefix);
    }
    assert.equal((await store.read.values(tenant, "a", 3)).length, 3);
  });

  it("tenants do not see each other's values", async () => {
    const { store } = fresh();
    await store.intake.putValue(tenant, "k", "ours", "must_create");
    await store.intake.putValue("globex", "k", "theirs", "must_create");
    await store.intake.putValue("globex", "k", "theirs again", { version: 1 });
    assert.deepEqual(await current(store, "k"), [1, "ours", false]);
    assert.equal((await store.read.values(tenant, ""))[0]?.value, "ours");
    await store.intake.deleteValue("globex", "k", 2);
    assert.deepEqual(await current(store, "k"), [1, "ours", false]);
    assert.equal((await store.read.valueHistory(tenant, "k", 0)).length, 1);
  });
};

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

import { strict as assert } from "node:assert";
import type { NewRecord, RecordData } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Cases, record, refused, step, tenant } from "./frame.ts";
import { begin, countOutcomes, unchanged } from "./holder.ts";

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
    for (const prefix of ["", "a", "a_", "𝄞"]) {
      const up = (await store.read.values(tenant, prefix)).map(({ key }) => key);
      const down: string[] = [];
      for (let more = true; more; ) {
        const page = await store.read.values(tenant, prefix, 2, down.at(-1), "desc");
        down.push(...page.map(({ key }) => key));
        more = page.more === true;
      }
      assert.deepEqual(down, up.toReversed(), `${prefix} from the last key down`);
    }
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

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openMemory } from "../../src/store/memory/open.ts";
import { groups, statements, without } from "../../src/store/memory/statements.ts";
import { Table, UndoLog } from "../../src/store/memory/table.ts";
import { Statements } from "../../src/store/sqlite/database.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { storeConformance } from "../../testkit/conformance/index.ts";

const api = { describe, it, beforeEach, afterEach };
const tenant = "acme";

storeConformance("memory", api, async () => {
  const clock = new ManualClock();
  const store = await openMemory({ clock });
  return { store, another: async () => store, elapse: (ms) => clock.elapse(ms), close: () => store.close() };
});

const codeOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "accepted",
    (error: unknown) => (error instanceof TapeError ? error.code : error),
  );

async function heldRun(store: Store, id = "run") {
  const first = { owner: "o", label: "l", reactor: "agent", ttlMs: 1_000, nonce: 1n };
  const [created] = await store.intake.createRuns(tenant, [{ id, workflow: "w", input: null }], first);
  if (created?.ok !== true || created.term === undefined) throw new Error("not created");
  return created.term;
}

describe("tables", () => {
  type Pet = { readonly id: number; readonly kind: string | null };
  const pets = () => {
    const undo = new UndoLog();
    return { undo, table: new Table(undo, (row: Pet) => row.id, { kind: (row) => row.kind }) };
  };

  it("a transaction that throws leaves nothing, in no group either", () => {
    const { undo, table } = pets();
    undo.transaction(() => {
      table.insert({ id: 1, kind: "cat" });
      table.insert({ id: 2, kind: null });
    });
    const cat = table.get(1)!;
    const work = () => {
      table.update(cat, { kind: "dog" });
      table.deleteAll([table.get(2)!]);
      table.insert({ id: 3, kind: "cat" });
      table.update(table.get(3)!, { kind: "dog" });
      table.insert({ id: 2, kind: "dog" });
      expect(table.by.kind("dog")).toHaveLength(3);
      throw new Error("stop");
    };
    expect(() => undo.transaction(work)).toThrow("stop");
    expect(table.all()).toEqual([
      { id: 1, kind: "cat" },
      { id: 2, kind: null },
    ]);
    expect(table.get(1)).toBe(cat);
    expect(table.by.kind("cat")).toEqual([cat]);
    expect(table.by.kind("dog")).toEqual([]);
  });

  it("what was read does not change under the reader", () => {
    const { undo, table } = pets();
    const before = undo.transaction(() => table.insert({ id: 1, kind: "cat" }));
    undo.transaction(() => table.update(before, { kind: "dog" }));
    expect(before.kind).toBe("cat");
    expect(() => Object.assign(before, { kind: "cow" })).toThrow(TypeError);
  });

  it("refuses a second row with the same key, and a write outside a transaction", () => {
    const { undo, table } = pets();
    undo.transaction(() => table.insert({ id: 1, kind: "cat" }));
    expect(() => undo.transaction(() => table.insert({ id: 1, kind: "dog" }))).toThrow("TAPE_INVARIANT");
    expect(() => table.insert({ id: 2, kind: "dog" })).toThrow("TAPE_INVARIANT");
    expect(table.all()).toHaveLength(1);
  });
});

describe("the memory store", () => {
  let store: Store;
  beforeEach(async () => {
    store = await openMemory({ clock: new ManualClock() });
  });
  afterEach(() => store.close());

  it("says what it is", async () => {
    expect(store).toMatchObject({ backend: "memory", exclusive: true, transactionBoundMs: 0 });
    expect(await store.read.settings()).toMatchObject({ epoch: 0, durable: false });
  });

  it("a refused append takes back what it had already written, journal numbers and feed positions too", async () => {
    const { fence } = await heldRun(store);
    const cursor = (await store.read.feed(undefined)).cursor;
    const effect = { name: "wire", semantics: "idempotent", dispatch: "outbox", args: 1, argsHash: "h" } as const;
    const twice = [
      { kind: "effect.intended", data: { ...effect, pos: 0, key: "a" } },
      { kind: "effect.intended", data: { ...effect, pos: 0, key: "b" } },
    ] as const;
    const woken: unknown[] = [];
    store.onWake((wake) => woken.push(wake));
    expect(await codeOf(store.fenced.append(fence, { after: 1, records: twice }))).toBe("TAPE_ILLEGAL_TRANSITION");
    expect(woken).toEqual([]);
    expect(await store.read.effects(tenant)).toEqual([]);
    expect(await store.read.leases(tenant)).toHaveLength(1);
    expect((await store.read.feed(cursor)).records).toEqual([]);
    await store.fenced.append(fence, { after: 1, records: [twice[0]] });
    expect((await store.read.effects(tenant))[0]?.item).toBe(fence.journal + 1);
    expect((await store.read.feed(cursor)).cursor).toBe(String(Number(cursor) + 2));
  });

  it("no effect can be seen in the turn of the call", async () => {
    const created = store.intake.createRuns(tenant, [{ id: "run", workflow: "w", input: 1 }]);
    expect(await store.read.run(tenant, "run")).toBeUndefined();
    await created;
    expect(await store.read.run(tenant, "run")).toBeDefined();
  });

  it("refuses a queue that swells", async () => {
    const small = await openMemory({ limits: { pendingItems: 2 } });
    const put = (key: string) => codeOf(small.intake.putValue(tenant, key, 1, "must_create"));
    expect(await Promise.all(["a", "b", "c"].map(put))).toEqual(["accepted", "accepted", "TAPE_OVERLOADED"]);
    expect(await put("c")).toBe("accepted");
    await small.close();
  });

  it("closed, it carries out what it had accepted and refuses everything else", async () => {
    const { fence } = await heldRun(store);
    const accepted = store.intake.putValue(tenant, "k", 1, "must_create");
    await Promise.all([store.close(), store.close()]);
    expect((await accepted).version).toBe(1);
    const record = { kind: "step.done", data: { pos: 0, name: "s" } } as const;
    const refused = [
      store.fenced.append(fence, { after: 1, records: [record] }),
      store.claim.renew([{ fence, progress: 0 }]),
      store.intake.cancel(tenant, "run", { reason: "r" }),
      store.read.run(tenant, "run"),
      store.read.feed(undefined),
      store.read.settings(),
      store.read.now(),
    ];
    expect(new Set(await Promise.all(refused.map(codeOf)))).toEqual(new Set(["TAPE_STORE_CLOSED"]));
  });

  it("a listener that throws harms neither the writer nor the others", async () => {
    const events: string[] = [];
    const logged = await openMemory({ log: (_level, event) => events.push(event) });
    logged.onWake(() => {
      throw new Error("listener");
    });
    const woken: unknown[] = [];
    const stop = logged.onWake((wake) => woken.push(wake));
    await logged.intake.putValue(tenant, "k", 1, "must_create");
    stop();
    await logged.intake.putValue(tenant, "k", 2, { version: 1 });
    expect(woken).toEqual([{ of: "value", tenant, key: "k" }]);
    expect(events).toEqual(["wake.listener_failed", "wake.listener_failed"]);
    await logged.close();
  });
});

describe("statements", () => {
  const inSql = [...Statements.all.keys()];

  it("are those of SQLite, but for the named ones", () => {
    expect(Object.keys(statements).sort()).toEqual(inSql.filter((name) => !Object.hasOwn(without, name)).sort());
    expect(Object.keys(without).filter((name) => !inSql.includes(name))).toEqual([]);
  });

  it("have one home each", () => {
    const names = groups.flatMap((group) => Object.keys(group));
    expect(names.toSorted()).toEqual(Object.keys(statements).toSorted());
  });
});

import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isMemoryUrl, openStore } from "../../src/host/open-store.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";

const tenant = "acme";

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

describe("memory:", () => {
  let store: Store;
  beforeEach(async () => {
    store = await openStore("memory:", { clock: new ManualClock() });
  });
  afterEach(() => store.close());

  it("reports what it is", async () => {
    expect(store).toMatchObject({ backend: "sqlite", exclusive: true, transactionBoundMs: 0 });
    const { durable, epoch, facts } = await store.read.settings();
    expect({ durable, epoch, facts }).toEqual({
      durable: false,
      epoch: 0,
      facts: { journalMode: "memory", exclusive: true, storeId: expect.stringMatching(/^[0-9a-f]{32}$/) },
    });
  });

  it("is a separate store for each handle", async () => {
    const clock = new ManualClock();
    const other = await openStore("memory:", { clock });
    await other.intake.putValue(tenant, "k", 1, "must_create");
    expect(await store.read.value(tenant, "k")).toBeUndefined();
    const idOf = async (opened: Store) => (await opened.read.settings()).facts.storeId;
    expect(await idOf(other)).not.toBe(await idOf(store));
    await other.close();
    const later = await openStore("memory:", { clock });
    expect(await later.read.value(tenant, "k")).toBeUndefined();
    await later.close();
  });

  it("uses the given clock", async () => {
    const clock = new ManualClock({ wall: 1_000_000 });
    const own = await openStore("memory:", { clock });
    const { fence } = await heldRun(own);
    await clock.elapse(500);
    expect(await own.read.now()).toBe(1_000_500);
    expect((await own.read.lease(tenant, { journal: fence.journal }))?.remainingMs).toBe(500);
    await own.close();
  });

  it.each([
    ["memory:", true],
    ["sqlite::memory:", true],
    ["sqlite::memory:?durability=relaxed", true],
    ["sqlite:./:memory:", false],
    ["sqlite:memory:", false],
    ["postgres://memory:5432/x", false],
  ])("%s is seen by its process alone: %s", (url, alone) => {
    expect(isMemoryUrl(url)).toBe(alone);
  });

  it("a rejected append rolls back its writes, feed positions included", async () => {
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
    expect((await store.read.effects(tenant))[0]?.item).toBeGreaterThan(fence.journal);
    expect((await store.read.feed(cursor)).cursor).toBe(String(Number(cursor) + 2));
  });

  it("no effect is visible in the tick of the call", async () => {
    const created = store.intake.createRuns(tenant, [{ id: "run", workflow: "w", input: 1 }]);
    expect(await store.read.run(tenant, "run")).toBeUndefined();
    await created;
    expect(await store.read.run(tenant, "run")).toBeDefined();
  });

  it("rejects writes when its queue is full", async () => {
    const small = await openStore("memory:", { limits: { pendingItems: 2 } });
    const put = (key: string) => codeOf(small.intake.putValue(tenant, key, 1, "must_create"));
    expect(await Promise.all(["a", "b", "c"].map(put))).toEqual(["accepted", "accepted", "TAPE_OVERLOADED"]);
    expect(await put("c")).toBe("accepted");
    await small.close();
  });

  it("a closed store completes accepted writes and rejects all others", async () => {
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

  it("a throwing listener affects neither the writer nor the other listeners", async () => {
    const events: string[] = [];
    const logged = await openStore("memory:", { log: (_level, event) => events.push(event) });
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

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it, type TestContext } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { EffectRow } from "../../src/model/rows.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { Child } from "./child-process.ts";
import { closedFor, placeOf, readLedger, type WorkerOptions } from "./engine-world.ts";

const postgresUrl = ownPostgres(18);

const tenant = "default";
/** About ten seconds each on an idle machine. A busy one may need longer, and a hang is still found. */
const patienceMs = 90_000;

interface World {
  readonly orders: WorkerOptions;
  readonly folder: string;
  readonly store: Store;
}

async function onSqlite(test: TestContext): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "tape-engine-"));
  return worldOf(test, folder, `sqlite:${join(folder, "tape.db")}`, 1_500);
}

async function onPostgres(test: TestContext): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "tape-engine-"));
  const database = await freshDatabase(postgresUrl());
  test.onTestFinished(() => dropDatabase(database));
  return worldOf(test, folder, `${database}?transaction_bound_ms=1500&connections=4`, 2_000);
}

async function worldOf(test: TestContext, folder: string, url: string, ttlMs: number): Promise<World> {
  const store = await openStore(url);
  test.onTestFinished(async () => {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  });
  const ledger = join(folder, "ledger");
  return { orders: { url, ledger, ttlMs, halts: false, blind: false, start: 0 }, folder, store };
}

/** Starts a process that is killed when the test ends. */
async function launch(label: string, orders: WorkerOptions, test: TestContext): Promise<Child> {
  const child = new Child(label, [JSON.stringify(orders)], test, "engine-worker.ts");
  await child.receive();
  return child;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await systemClock.sleep(100); // the check itself takes time
}

const statuses = async (store: Store): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { status } of await store.read.runs(tenant, { limit: 1_000 })) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

// Sequential, because 200 runs keep a small machine busy enough.
describe.each([
  ["one SQLite file", onSqlite],
  ["one PostgreSQL database", onPostgres],
])("processes on %s", (name, open) => {
  it(
    "after kill -9 with 200 runs in flight others finish them all, and nothing is paid twice",
    async (test) => {
      const { expect } = test;
      const world = await open(test);
      const { store } = world;
      // Long enough that the first process keeps its 200 leases while it starts on a busy machine.
      const orders = { ...world.orders, ttlMs: 4_000 };
      const total = 200;
      const first = await launch("worker-a", { ...orders, halts: true, start: total }, test);
      const paid = [...Array(total).keys()].filter((order) => /after|last/.test(placeOf(order)));
      const booking = async () => (await store.read.effects(tenant, { status: ["CONFIRMED"], limit: 1_000 })).length;
      await until(async () => readLedger(orders.ledger).length === paid.length && (await booking()) === total / 4);
      expect(await statuses(store)).toEqual({ RUNNING: total });
      first.kill();
      await writeFile(closedFor(orders.ledger), "");
      const killedAt = systemClock.mono();

      // Each process drives suspects one at a time, so several processes share the work.
      const others = ["worker-b", "worker-c"];
      await Promise.all(others.map((label) => launch(label, orders, test)));
      await until(async () => (await statuses(store)).COMPLETED === total);
      console.log(`${name}: ${total} runs finished ${Math.round(systemClock.mono() - killedAt)} ms after kill -9`);

      const ledger = readLedger(orders.ledger);
      expect(ledger.map(({ order }) => order).toSorted((a, b) => a - b)).toEqual([...Array(total).keys()]);
      // All kinds of interruptions occurred, and each of the other processes has worked.
      const reasons = new Map<string, number>();
      for (const { reason } of await store.read.effects(tenant, { limit: 1_000 })) {
        reasons.set(reason!, (reasons.get(reason!) ?? 0) + 1);
      }
      expect(Object.fromEntries(reasons)).toEqual({ returned: 150, observed: 50 });
      const drivers = new Set<string>();
      for (let order = 0; order < total; order++) {
        for (const { label } of await store.read.terms(tenant, { run: `order-${order}` })) drivers.add(label);
      }
      expect([...drivers].toSorted()).toEqual(["worker-a", ...others]);
    },
    patienceMs,
  );

  it(
    "uses the late result of a zombie that was stopped during an effect past its lease",
    async (test) => {
      const { expect } = test;
      const { orders, store, folder } = await open(test);
      const answersAt = join(folder, "answer");
      const slow = { ...orders, blind: true, answersAt };
      const zombie = await launch("zombie", { ...slow, start: 1 }, test);
      await until(async () => readLedger(orders.ledger).length === 1);
      zombie.pause();
      await launch("successor", slow, test);
      const payment = async (): Promise<EffectRow | undefined> =>
        (await store.read.effects(tenant, { run: "order-0" }))[0];
      // The successor has observed, and the observation was inconclusive.
      await until(async () => {
        const effect = await payment();
        if (effect?.status !== "UNKNOWN" || effect.item === null) return false;
        return (await store.read.journal(tenant, { journal: effect.item })).some(
          ({ kind }) => kind === "effect.observed",
        );
      });
      await writeFile(answersAt, "");
      zombie.wake();
      await until(async () => (await statuses(store)).COMPLETED === 1);

      expect(await payment()).toMatchObject({ status: "CONFIRMED", reason: "evidence", attempt: 1 });
      expect((await store.read.run(tenant, "order-0"))?.outcome).toBe("receipt 0");
      expect(readLedger(orders.ledger)).toMatchObject([{ order: 0, token: "1" }]);
      const terms = await store.read.terms(tenant, { run: "order-0" });
      expect(terms.slice(0, 2)).toMatchObject([
        { label: "zombie", endReason: "expired" },
        { label: "successor", startReason: "recovery" },
      ]);
    },
    patienceMs,
  );
});

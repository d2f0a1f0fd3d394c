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
import { Actor } from "./actor.ts";
import { closedFor, type Orders, placeOf, readLedger } from "./engine-world.ts";

const postgresUrl = ownPostgres(18);

const tenant = "default";
/** Some ten seconds each on an idle machine; a busy one may take its time, and a hang is still found. */
const patienceMs = 90_000;

interface World {
  readonly orders: Orders;
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

/** A process that is killed with the test, by its own id, whatever it is doing then. */
async function launch(label: string, orders: Orders, test: TestContext): Promise<Actor> {
  const actor = new Actor(label, [JSON.stringify(orders)], test, "engine-worker.ts");
  await actor.hear();
  return actor;
}

async function until(look: () => Promise<boolean>): Promise<void> {
  while (!(await look())) await systemClock.sleep(100); // the look itself costs something
}

const statuses = async (store: Store): Promise<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { status } of await store.read.runs(tenant, { limit: 1_000 })) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

// One after the other: 200 runs keep a small machine busy enough.
describe.each([
  ["one SQLite file", onSqlite],
  ["one PostgreSQL database", onPostgres],
])("processes on %s", (name, open) => {
  it(
    "kill -9 with 200 runs in flight: others finish them all, and nothing is paid twice",
    async (test) => {
      const { expect } = test;
      const world = await open(test);
      const { store } = world;
      // Long enough that the first does not lose 200 leases by itself while it starts, on a busy machine.
      const orders = { ...world.orders, ttlMs: 4_000 };
      const total = 200;
      const first = await launch("worker-a", { ...orders, halts: true, start: total }, test);
      const acted = [...Array(total).keys()].filter((order) => /after|last/.test(placeOf(order)));
      const booking = async () => (await store.read.effects(tenant, { status: ["CONFIRMED"], limit: 1_000 })).length;
      await until(async () => readLedger(orders.ledger).length === acted.length && (await booking()) === total / 4);
      expect(await statuses(store)).toEqual({ RUNNING: total });
      first.kill();
      await writeFile(closedFor(orders.ledger), "");
      const killedAt = systemClock.mono();

      // Suspects are driven one at a time in each process: several of them share the work.
      const others = ["worker-b", "worker-c"];
      await Promise.all(others.map((label) => launch(label, orders, test)));
      await until(async () => (await statuses(store)).COMPLETED === total);
      console.log(`${name}: ${total} runs finished ${Math.round(systemClock.mono() - killedAt)} ms after kill -9`);

      const ledger = readLedger(orders.ledger);
      expect(ledger.map(({ order }) => order).toSorted((a, b) => a - b)).toEqual([...Array(total).keys()]);
      // Not vacuous: all kinds of leftovers were there, and each of the others has worked.
      const reasons = new Map<string, number>();
      for (const { reason } of await store.read.effects(tenant, { limit: 1_000 })) {
        reasons.set(reason!, (reasons.get(reason!) ?? 0) + 1);
      }
      expect(Object.fromEntries(reasons)).toEqual({ returned: 150, observed: 50, ABSENT: 50 });
      const drivers = new Set<string>();
      for (let order = 0; order < total; order++) {
        for (const { label } of await store.read.terms(tenant, { run: `order-${order}` })) drivers.add(label);
      }
      expect([...drivers].toSorted()).toEqual(["worker-a", ...others]);
    },
    patienceMs,
  );

  it(
    "the zombie: stopped in an act past its lease, replaced and woken, its late answer is evidence and is used",
    async (test) => {
      const { expect } = test;
      const { orders, store, folder } = await open(test);
      const answersAt = join(folder, "answer");
      const slow = { ...orders, blind: true, answersAt };
      const zombie = await launch("zombie", { ...slow, start: 1 }, test);
      await until(async () => readLedger(orders.ledger).length === 1);
      zombie.pause();
      await launch("heir", slow, test);
      const act = async (): Promise<EffectRow | undefined> => (await store.read.effects(tenant, { run: "order-0" }))[0];
      // The heir has looked, too, and could not tell.
      await until(async () => {
        const effect = await act();
        if (effect?.status !== "UNKNOWN" || effect.item === null) return false;
        return (await store.read.journal(tenant, { journal: effect.item })).some(
          ({ kind }) => kind === "effect.observed",
        );
      });
      await writeFile(answersAt, "");
      zombie.wake();
      await until(async () => (await statuses(store)).COMPLETED === 1);

      expect(await act()).toMatchObject({ status: "CONFIRMED", reason: "evidence", attempt: 1 });
      expect((await store.read.run(tenant, "order-0"))?.outcome).toBe("receipt 0");
      expect(readLedger(orders.ledger)).toMatchObject([{ order: 0, token: "1" }]);
      const terms = await store.read.terms(tenant, { run: "order-0" });
      expect(terms.slice(0, 2)).toMatchObject([
        { label: "zombie", endReason: "expired" },
        { label: "heir", startReason: "recovery" },
      ]);
    },
    patienceMs,
  );
});

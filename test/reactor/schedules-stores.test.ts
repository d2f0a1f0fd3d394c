import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Schedules } from "../../src/host/schedules.ts";
import { decodeSchedule, encodeSchedule, runIdOf, type SchedulePlan } from "../../src/model/schedule.ts";
import { timers } from "../../src/reactor/timers.ts";
import { workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { ownPostgres } from "../postgres/own.ts";
import { mortal, setStage, stageOn, tenant } from "./stage.ts";

const postgresUrl = ownPostgres(18);
let database: string;
beforeAll(async () => {
  database = await freshDatabase(postgresUrl());
});
afterAll(() => dropDatabase(database));

/** Two clients where the store can have two. */
const backends: Record<string, () => Promise<[Store, Store]>> = {
  sqlite: async () => {
    const store = await openSqlite({ file: ":memory:" });
    return [store, store];
  },
  postgres: async () => [await openPostgres({ url: database }), await openPostgres({ url: database })],
};

let made = 0;
const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

describe.each(Object.keys(backends))("schedules on %s", (backend) => {
  /**
   * An hourly schedule of one day whose first hours were missed. The day is over and comes again in a year:
   * no hour that passes during a test adds a firing.
   */
  const scene = async (change: Partial<SchedulePlan> = {}, missed = 1) => {
    const stores = await backends[backend]!();
    onTestFinished(async () => {
      for (const store of new Set(stores)) await store.close();
    });
    const [store] = stores;
    const id = `s${++made}`;
    const now = await store.read.now();
    const due = Math.floor(now / dayMs - 2) * dayMs;
    const day = new Date(due);
    const cron = `0 0-${missed - 1} ${day.getUTCDate()} ${day.getUTCMonth() + 1} *`;
    const plan: SchedulePlan = {
      uid: id,
      workflow: "report",
      input: { of: id },
      cron,
      timeZone: "UTC",
      overlap: "allow",
      catchUp: "all",
      windowMs: 100 * hourMs,
      dueAt: due,
      lastRun: null,
      ...change,
    };
    await store.intake.putSchedule(tenant, { id, spec: encodeSchedule(plan), nextAt: plan.dueAt, paused: false });
    const stage = stageOn(store, systemClock);
    const started = async () =>
      (await store.read.runs(tenant)).map((run) => run.id).filter((run) => run.startsWith(`${id}@`));
    const row = async () => (await store.read.schedules(tenant)).find((one) => one.id === id)!;
    const ids = Array.from({ length: missed }, (_, k) => runIdOf(id, due + k * hourMs));
    return { stage, stores, store, id, now, due, ids, started, row };
  };

  it("two replicas on one schedule: each firing starts one run", async () => {
    const { stage, stores, now, ids, started, row } = await scene({}, 20);
    const replicas = stores.map((store) => timers(stage.replica({ store })));
    let found: number;
    do {
      const rounds = await Promise.all([...replicas, ...replicas].map((reactor) => reactor.runOnce(100)));
      found = rounds.reduce((sum, round) => sum + round.found, 0);
    } while (found > 0);
    expect((await started()).toSorted()).toEqual(ids.toSorted());
    expect((await row()).nextAt).toBeGreaterThan(now + 300 * dayMs);
  });

  it("two replicas and a run that must not overlap: one run", async () => {
    const { stage, stores, started } = await scene({ overlap: "skip" }, 10);
    await Promise.all(stores.map((store) => timers(stage.replica({ store })).runOnce(100)));
    expect(await started()).toHaveLength(1);
  });

  it("is not fired early, nor while it is paused", async () => {
    const { stage, store, id, now, due, started, row } = await scene();
    const { spec } = await row();
    const nextAt = now + hourMs;
    const later = encodeSchedule({ ...decodeSchedule(id, spec), dueAt: nextAt });
    await store.intake.putSchedule(tenant, { id, spec: later, nextAt, paused: false });
    await timers(stage.replica()).runOnce(100);
    expect(await started()).toEqual([]);
    await store.intake.putSchedule(tenant, { id, spec, nextAt: due, paused: true });
    await timers(stage.replica()).runOnce(100);
    expect(await started()).toEqual([]);
    await store.intake.putSchedule(tenant, { id, spec, nextAt: due, paused: false });
    await timers(stage.replica()).runOnce(100);
    expect(await started()).toHaveLength(1);
  });

  it.each(["before", "after"] as const)(
    "a crash %s the firing transaction loses nothing and fires nothing twice",
    async (when) => {
      const { stage, store, ids, started } = await scene({}, 3);
      const mine = mortal(store);
      mine.dieAt("intake.fireSchedule", when);
      void timers(stage.replica({ store: mine.store })).runOnce(100);
      await mine.died;
      expect(await started()).toEqual(when === "before" ? [] : ids.slice(0, 1));
      // No lease was held: the next poll continues at once.
      await timers(stage.replica()).runOnce(100);
      expect((await started()).toSorted()).toEqual(ids.toSorted());
    },
  );

  it("detects a lost response by the version", async () => {
    const { stage, store, ids, started } = await scene({}, 2);
    let lost = 0;
    const fireSchedule: typeof store.intake.fireSchedule = async (...args) => {
      const fired = await store.intake.fireSchedule(...args);
      if (lost++ === 0) throw new Error("the connection was reset");
      return fired;
    };
    const deps = stage.replica({ store: { ...store, intake: { ...store.intake, fireSchedule } } });
    expect(await timers(deps).runOnce(100)).toMatchObject({ failed: 1 });
    await timers(deps).runOnce(100);
    expect((await started()).toSorted()).toEqual(ids.toSorted());
  });
});

it("adds one firing for an hour that passes between a crash and the next poll, and repeats none", async () => {
  const { clock, store, replica } = await setStage();
  clock.stepWall(Date.parse("2026-11-15T04:59:59.999Z") - clock.wall());
  await new Schedules(store, tenant, seededRandom(7)).create(
    "s",
    workflow("report", async () => 1),
    1,
    {
      cron: "0 * * * *",
      catchUp: "all",
      overlap: "allow",
    },
  );
  await clock.elapse(2 * hourMs); // 05:00 and 06:00 are missed, 07:00 is a millisecond away
  const mine = mortal(store);
  mine.dieAt("intake.fireSchedule", "before");
  void timers(replica({ store: mine.store })).runOnce(100);
  await mine.died;
  await clock.elapse(1);
  const next = timers(replica());
  await next.runOnce(100);
  await next.runOnce(100);
  const hours = ["05", "06", "07"].map((hour) => runIdOf("s", Date.parse(`2026-11-15T${hour}:00:00Z`)));
  expect((await store.read.runs(tenant)).map(({ id }) => id).toSorted()).toEqual(hours);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import { encodeSchedule, type SchedulePlan } from "../../src/model/schedule.ts";
import { fireSchedules, maxPerPoll } from "../../src/reactor/fire-schedules.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, stage } from "../server/stage.ts";
import { sceneOn } from "../store/postgres/scene.ts";

const minute = 60_000;
const day = 24 * 60 * minute;
const plan = (more: Partial<SchedulePlan>): SchedulePlan => ({
  ...{ uid: "u", workflow: "w", input: 1, cron: "* * * * *", timeZone: "UTC", overlap: "allow", catchUp: "all" },
  ...{ windowMs: day, dueAt: 0, lastRun: null },
  ...more,
});

/** Schedules that once started fifty runs per poll without end, and similar ones. */
const floods: Readonly<Record<string, Partial<SchedulePlan>>> = {
  "every second since 1970": { cron: "* * * * * *", windowMs: 1e15 },
  "every second of a day": { cron: "* * * * * *" },
  "a window beyond a year": { windowMs: 367 * day, catchUp: "latest" },
  "every minute of a year": { windowMs: 366 * day },
  // The search for it, day by day over 18 years, blocked a server for half a second.
  "a day that occurs once in decades": { cron: "0 0 29 2 +1#5", timeZone: "America/New_York", windowMs: 0 },
};

describe("a flood by one schedule", () => {
  it.each(Object.entries(floods))("%s: is refused over HTTP with a code and writes nothing", async (_what, more) => {
    const store = await openStore("memory:");
    onTestFinished(() => store.close());
    await giveTokens(store, "acme");
    const server = await stage({ store, credentials: "required", tenant: "home" });
    onTestFinished(() => server.close());
    const body = { spec: encodeSchedule(plan(more)), nextAt: 0, paused: false };
    const response = await ask(server.server.exchange, "PUT", "/v1/schedules/flood", {
      ...{ token: tokenOf("acme", "starter"), body },
    });
    expect(response).toMatchObject({ status: 400, json: { code: "TAPE_BAD_SCHEDULE" } });
    expect(await store.read.schedules("acme")).toEqual([]);
  });
});

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  SQLite: async () => {
    const folder = mkdtempSync(join(tmpdir(), "tape-schedules-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    return openSqlite({ file: join(folder, "tape.db"), durability: "relaxed" });
  },
  PostgreSQL: async () => {
    const scene = await sceneOn(inject("postgres18"));
    onTestFinished(() => scene.close());
    return scene.store;
  },
};

describe.each(Object.entries(stores))("%s: hundreds of schedules with many missed firings", (_name, open) => {
  const flooded = async (count: number) => {
    const store = await open();
    onTestFinished(() => store.close());
    const now = await store.read.now();
    const due = Math.floor(now / minute) * minute - 20 * minute;
    const put = (tenant: string, id: string, more: Partial<SchedulePlan> = {}) => {
      const spec = encodeSchedule(plan({ dueAt: due, ...more }));
      return store.intake.putSchedule(tenant, { id, spec, nextAt: more.dueAt ?? due, paused: false });
    };
    for (let k = 0; k < count; k += 100) {
      await Promise.all(Array.from({ length: 100 }, (_, j) => put("acme", `a${k + j}`)));
    }
    const fired: string[] = [];
    const log = (_level: string, event: string, fields?: Readonly<Record<string, unknown>>): void => {
      if (event === "schedules.fired") fired.push(String(fields?.tenant));
    };
    const deps = { store, log, clock: systemClock, random: seededRandom(1) };
    const of = (name: string): number => fired.filter((tenant) => tenant === name).length;
    return { store, deps, put, of };
  };

  it("start a bounded number of runs per poll and delay another tenant only briefly", async () => {
    const { store, deps, put, of } = await flooded(maxPerPoll + 100);
    await put("globex", "g", { catchUp: "latest" });
    expect((await store.read.dueSchedules(maxPerPoll)).slice(0, 2).map(({ tenant }) => tenant)).toContain("globex");
    const flood = fireSchedules({ ...deps, tenant: "acme" }, 1_000);
    await fireSchedules({ ...deps, tenant: "globex" }, 1_000);
    // Three queries of the store, each behind the pending ones.
    expect([of("globex"), of("acme") < maxPerPoll / 2]).toEqual([1, true]);
    await flood;
    expect(of("acme")).toBe(maxPerPoll);
  });
});

import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { createRunner, Tape, workflow } from "../../src/exports/index.ts";
import { openStore } from "../../src/host/open-store.ts";
import { defaultLimits } from "../../src/model/limits.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Plan, type PlanContext, runPlan } from "../../src/store/sql/plan.ts";
import { createPlan } from "../../src/store/sql/plans/create.ts";
import { putSchedulePlan } from "../../src/store/sql/plans/intake.ts";
import { PartitionDeltas } from "../../src/store/sql/plans/partitions.ts";
import { setQuotaPlan } from "../../src/store/sql/plans/quotas.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { Statements } from "../../src/store/sqlite/statements.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { scheduleSpec, spec, tenant } from "../../testkit/conformance/frame.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

const audit = { by: "ann", reason: "a drill" };

describe("a greedy tenant, over HTTP", () => {
  let store: Store;
  let current: Stage;
  beforeEach(async () => {
    store = await openStore("memory:");
    for (const one of ["acme", "globex"]) await giveTokens(store, one);
    await store.intake.setQuota("acme", { runs: 3, schedules: 2, streams: 2 }, audit);
    current = await stage({ store, credentials: "required", tenant: "home" });
  });
  afterEach(async () => {
    await current.close();
    await store.close();
  });
  const call = (of: string, method: string, path: string, body: unknown) =>
    ask(current.server.exchange, method, path, { token: tokenOf(of, "worker"), body });

  it("cannot exceed its quota of runs by any route; the error names quota, usage and next action", async () => {
    for (let k = 0; k < 3; k++) await call("acme", "POST", "/v1/runs", { id: `r${k}`, workflow: "w", input: 1 });
    const refused = {
      status: 429,
      json: {
        code: "TAPE_QUOTA",
        details: { quota: "runs", used: 3, limit: 3 },
        next: expect.stringContaining("quota"),
      },
    };
    expect(await call("acme", "POST", "/v1/runs", { id: "r3", workflow: "w", input: 1 })).toMatchObject(refused);
    const first = { owner: "o/1", label: "o", reactor: "agent", ttlMs: 60_000, nonce: "7" };
    const made = await call("acme", "POST", "/v1/store/create", {
      calls: [{ specs: [{ id: "r4", workflow: "w", input: 1 }], first }],
    });
    expect(JSON.stringify(made.json)).toContain("TAPE_QUOTA");
    expect(await store.read.runs("acme")).toHaveLength(3);
    expect((await call("globex", "POST", "/v1/runs", { id: "r3", workflow: "w", input: 1 })).status).toBe(200);
    expect((await call("acme", "POST", "/v1/runs", { id: "r0", workflow: "w", input: 1 })).status).toBe(200);
    const { json } = await ask(current.server.exchange, "GET", "/metrics");
    expect(json).toContain('tape_quota_refusals_total{quota="runs"} 1');
  });

  it("cannot exceed its quota of schedules", async () => {
    const put = (of: string, id: string) =>
      call(of, "PUT", `/v1/schedules/${id}`, { spec: scheduleSpec(), nextAt: null, paused: false });
    const statuses = await Promise.all(["a", "b", "c", "d"].map(async (id) => (await put("acme", id)).status));
    expect(statuses.sort()).toEqual([200, 200, 429, 429]);
    expect((await put("globex", "a")).status).toBe(200);
  });

  it("cannot exceed its quota of streams; closing one frees a place", async () => {
    const open = async (of: string) => {
      const gone = new AbortController();
      const headers = { authorization: `Bearer ${tokenOf(of, "reader")}` };
      const request = { method: "GET", url: "/v1/feed/stream", headers, signal: gone.signal };
      const { status } = await current.server.exchange(request);
      return { status, gone };
    };
    const streams = [await open("acme"), await open("acme"), await open("acme"), await open("globex")];
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
    streams[0]!.gone.abort();
    const reopened = await open("acme");
    expect(reopened.status).toBe(200);
    for (const { gone } of [...streams, reopened]) gone.abort();
  });
});

describe("a tenant that fills the disk", () => {
  it("is stopped by a measurement that is at most five seconds old", async () => {
    const clock = new ManualClock();
    const store = await openSqlite({ file: ":memory:", clock });
    onTestFinished(() => store.close());
    await store.intake.setQuota(tenant, { bytes: 100_000 }, audit);
    let started = 0;
    for (; started < 50; started++) {
      const [result] = await store.intake.createRuns(tenant, [spec({ input: "x".repeat(10_000) })]);
      if (!result!.ok) break;
      await clock.elapse(1_000);
    }
    // Ten fill it; five more may start before the next measurement.
    expect(started).toBeGreaterThanOrEqual(10);
    expect(started).toBeLessThanOrEqual(16);
    expect((await store.read.quota(tenant)).used.bytes).toBeGreaterThan(100_000);
  });
});

describe("an accepted run", () => {
  it("finishes with its children although the quota is exhausted", async () => {
    await using app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [parent, child] }) });
    await app.store.intake.setQuota("default", { runs: 1 }, audit);
    const run = await app.start(parent, 3);
    expect(await run.result()).toBe(6);
  });
});
const child = workflow("child", async (_tape, n: number) => n * 2);
const parent = workflow("parent", async (tape, n: number) => (await tape.spawn(child, n)).result());

describe("a tenant without a quota", () => {
  const db = openDatabase(":memory:");
  migrate(db, silentLog);
  const statements = new Statements(db);
  const times = { at: 1_000_000, now: 1, steady: 1 };
  let journals = 1;
  /** The names of the statements of one transaction: the same for every store with plans. */
  const statementsOf = <T>(make: (deps: PlanContext) => Plan<T>): string[] => {
    const names: string[] = [];
    const deps: PlanContext = {
      ...{ limits: defaultLimits, locksRelease: false, partitions: new PartitionDeltas() },
      allocate: () => ++journals,
      wake() {},
    };
    runPlan(make(deps), ({ sql, params }) => {
      names.push(sql);
      return statements.perform(sql, params, times);
    });
    return names;
  };
  const start = (of: string) =>
    statementsOf((deps) => createPlan(deps, of, { id: `run-${journals}`, workflow: "w", input: 1, inputHash: "h" }));
  const put = (of: string) =>
    statementsOf((deps) => {
      const row = { id: `s-${++journals}`, spec: scheduleSpec(), nextAt: null, paused: false };
      return putSchedulePlan(deps, of, row, null);
    });

  it("needs no additional statement for a start or a schedule, whatever quotas others have", () => {
    const bare = { start: ["run.root", "lease.create", "record.create"], put: ["schedule.put"] };
    expect({ start: start(tenant), put: put(tenant) }).toEqual(bare);
    statementsOf(() => setQuotaPlan("globex", { runs: 5, schedules: 5 }, audit));
    expect({ start: start(tenant), put: put(tenant) }).toEqual(bare);
    expect(start("globex")).toEqual([
      ...["run.root", "run.find", "tombstone.find", "quota.seen", "quota.lock", "quota.open", "quota.use"],
      ...bare.start,
    ]);
    expect(put("globex")).toEqual(["schedule.put", "schedule.find", "quota.lock", "schedule.count", "schedule.put"]);
  });
});

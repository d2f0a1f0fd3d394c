import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { silentLog } from "../../src/base/log.ts";
import { createRunner, Tape, workflow } from "../../src/exports/index.ts";
import { openStore } from "../../src/host/open-store.ts";
import { defaultLimits } from "../../src/model/limits.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { type Plan, type PlanContext, runPlan } from "../../src/store/sql/plan.ts";
import { createPlan } from "../../src/store/sql/plans/create.ts";
import { putSchedulePlan } from "../../src/store/sql/plans/intake.ts";
import { setQuotaPlan } from "../../src/store/sql/plans/quotas.ts";
import { openDatabase } from "../../src/store/sqlite/database.ts";
import { migrate } from "../../src/store/sqlite/migrate.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { Statements } from "../../src/store/sqlite/statements.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { scheduleSpec, spec, tenant } from "../../testkit/conformance/frame.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { ask, type Stage, stage } from "../server/stage.ts";

const act = { by: "ann", reason: "a drill" };

describe("a tenant that takes all it can get, over HTTP", () => {
  let store: Store;
  let current: Stage;
  beforeEach(async () => {
    store = await openStore("memory:");
    for (const one of ["acme", "globex"]) await giveTokens(store, one);
    await store.intake.setQuota("acme", { runs: 3, schedules: 2, streams: 2 }, act);
    current = await stage({ store, credentials: "required", tenant: "home" });
  });
  afterEach(async () => {
    await current.close();
    await store.close();
  });
  const call = (of: string, method: string, path: string, body: unknown) =>
    ask(current.server.exchange, method, path, { token: tokenOf(of, "worker"), body });

  it("has as many runs as it may, by every door, and is told which quota, how much, and what next", async () => {
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

  it("has as many schedules as it may", async () => {
    const put = (of: string, id: string) =>
      call(of, "PUT", `/v1/schedules/${id}`, { spec: scheduleSpec(), nextAt: null, paused: false });
    const statuses = await Promise.all(["a", "b", "c", "d"].map(async (id) => (await put("acme", id)).status));
    expect(statuses.sort()).toEqual([200, 200, 429, 429]);
    expect((await put("globex", "a")).status).toBe(200);
  });

  it("has as many streams open as it may; one that ends makes room", async () => {
    const open = async (of: string) => {
      const gone = new AbortController();
      const headers = { authorization: `Bearer ${tokenOf(of, "reader")}` };
      const asked = { method: "GET", url: "/v1/feed/stream", headers, signal: gone.signal };
      const { status } = await current.server.exchange(asked);
      return { status, gone };
    };
    const streams = [await open("acme"), await open("acme"), await open("acme"), await open("globex")];
    expect(streams.map(({ status }) => status)).toEqual([200, 200, 429, 200]);
    streams[0]!.gone.abort();
    const again = await open("acme");
    expect(again.status).toBe(200);
    for (const { gone } of [...streams, again]) gone.abort();
  });
});

describe("a tenant that fills the disk", () => {
  it("is stopped by what was measured five seconds ago or later", async () => {
    const clock = new ManualClock();
    const store = await openSqlite({ file: ":memory:", clock });
    onTestFinished(() => store.close());
    await store.intake.setQuota(tenant, { bytes: 100_000 }, act);
    let started = 0;
    for (; started < 50; started++) {
      const [verdict] = await store.intake.createRuns(tenant, [spec({ input: "x".repeat(10_000) })]);
      if (!verdict!.ok) break;
      await clock.elapse(1_000);
    }
    // Ten fill it; five more may begin before it is measured again.
    expect(started).toBeGreaterThanOrEqual(10);
    expect(started).toBeLessThanOrEqual(16);
    expect((await store.read.quota(tenant)).used.bytes).toBeGreaterThan(100_000);
  });
});

describe("a run that was let in", () => {
  it("finishes, with its children, where its tenant has no room left", async () => {
    await using app = await Tape.open({ store: "memory:", runner: createRunner({ workflows: [parent, child] }) });
    await app.store.intake.setQuota("default", { runs: 1 }, act);
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
  /** The statements that one transaction asks for, by name: the same for every store that has plans. */
  const asked = <T>(make: (deps: PlanContext) => Plan<T>): string[] => {
    const names: string[] = [];
    const deps: PlanContext = { limits: defaultLimits, locksRelease: false, allocate: () => ++journals, wake() {} };
    runPlan(make(deps), (one) => {
      names.push(one.sql);
      return statements.perform(one.sql, one.params, times);
    });
    return names;
  };
  const start = (of: string) =>
    asked((deps) => createPlan(deps, of, { id: `run-${journals}`, workflow: "w", input: 1, inputHash: "h" }));
  const put = (of: string) =>
    asked((deps) => {
      const row = { id: `s-${++journals}`, spec: scheduleSpec(), nextAt: null, paused: false };
      return putSchedulePlan(deps, of, row, null);
    });

  it("pays nothing: a start and a schedule ask for the same statements as ever, whatever others have", () => {
    const bare = { start: ["run.root", "lease.create", "record.create"], put: ["schedule.put"] };
    expect({ start: start(tenant), put: put(tenant) }).toEqual(bare);
    asked(() => setQuotaPlan("globex", { runs: 5, schedules: 5 }, act));
    expect({ start: start(tenant), put: put(tenant) }).toEqual(bare);
    expect(start("globex")).toEqual([
      ...["run.root", "run.find", "tombstone.find", "quota.seen", "quota.lock", "quota.open", "quota.use"],
      ...bare.start,
    ]);
    expect(put("globex")).toEqual(["schedule.put", "schedule.find", "quota.lock", "schedule.count", "schedule.put"]);
  });
});

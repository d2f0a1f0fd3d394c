import { describe, expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { Schedules } from "../../src/host/schedules.ts";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import { timers } from "../../src/reactor/timers.ts";
import { workflow } from "../../src/sdk/workflow.ts";
import { record, scheduleSpec } from "../../testkit/conformance/frame.ts";
import { hold } from "../../testkit/conformance/holder.ts";
import { type Stage, setStage, tenant } from "./stage.ts";

const hourMs = 3_600_000;
const report = workflow("report", async (_tape, input: { of: string }) => input.of);
const other = workflow("other", async () => 1);

/** The stage's clock, set to this time. */
async function setClock(at: string): Promise<Stage & { schedules: Schedules; poll(limit?: number): Promise<unknown> }> {
  const stage = await setStage();
  stage.clock.stepWall(Date.parse(at) - stage.clock.wall());
  const schedules = new Schedules(stage.store, tenant, seededRandom(7));
  const reactor = timers(stage.replica());
  return { ...stage, schedules, poll: (limit = 10) => reactor.runOnce(limit) };
}

const started = async ({ store }: Pick<Stage, "store">): Promise<string[]> =>
  (await store.read.runs(tenant)).map(({ id }) => id).reverse();

async function end({ store }: Pick<Stage, "store">, id: string): Promise<void> {
  const run = await hold(store, id);
  await run.write(record("run.ended", { status: "COMPLETED", outcome: 1, notesTaken: 0 }));
}

const hourly = { cron: "0 * * * *" } as const;

describe("a schedule", () => {
  it("starts its runs when they are due, never early, each once, by the ids of their times", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const made = await stage.schedules.create("hourly", report, { of: "x" }, { ...hourly, labels: { team: "a" } });
    expect(made).toMatchObject({ nextAt: Date.parse("2026-11-15T01:00Z"), lastRun: null, paused: false });
    await stage.clock.elapse(30 * 60_000 - 1);
    expect(await stage.poll()).toEqual({ found: 0, done: 0, failed: 0, lagMs: 0 });
    expect(await started(stage)).toEqual([]);
    await stage.clock.elapse(1 + 250);
    expect(await stage.poll()).toEqual({ found: 1, done: 1, failed: 0, lagMs: 250 });
    expect(await stage.poll()).toMatchObject({ found: 0 });
    const id = "hourly@2026-11-15T01:00:00.000Z";
    expect(await started(stage)).toEqual([id]);
    expect(await stage.store.read.run(tenant, id)).toMatchObject({
      workflow: "report",
      status: "RUNNABLE",
      labels: { team: "a", schedule: "hourly" },
    });
    const [created] = await stage.store.read.journal(tenant, { run: id });
    expect(created?.data).toMatchObject({ schedule: "hourly", input: { of: "x" } });
    expect(await stage.schedules.list()).toMatchObject([{ lastRun: id, nextAt: Date.parse("2026-11-15T02:00Z") }]);
  });

  it("runs by the clock on the wall of its time zone", async () => {
    const stage = await setClock("2026-03-28T12:00:00Z");
    await stage.schedules.create("s", report, { of: "x" }, { cron: "30 2 * * *", timeZone: "Europe/Zurich" });
    await stage.clock.elapse(13 * hourMs);
    await stage.poll();
    expect(await started(stage)).toEqual(["s@2026-03-29T01:00:00.000Z"]);
  });

  it("is polled exactly when it is due", async () => {
    const stage = await setClock("2026-11-15T00:59:58Z");
    const deps = stage.replica();
    const loop = new ReactorLoop({
      reactors: [timers(deps)],
      store: stage.store,
      clock: stage.clock,
      log: deps.log,
    });
    await loop.start();
    await stage.clock.elapse(0);
    await stage.schedules.create("s", report, { of: "x" }, hourly);
    await stage.clock.elapse(1_999);
    expect(await started(stage)).toEqual([]);
    await stage.clock.elapse(1);
    expect(await started(stage)).toHaveLength(1);
    await loop.stop();
  });
});

describe("overlap", () => {
  const twoHours = async (overlap: "skip" | "allow" | "wait", catchUp: "all" | "latest" = "latest") => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    await stage.schedules.create("s", report, { of: "x" }, { ...hourly, overlap, catchUp });
    for (let hour = 0; hour < 3; hour++) {
      await stage.clock.elapse(hourMs);
      await stage.poll();
    }
    return stage; // it is half past three, and the run of one o'clock has not ended
  };
  const of = (...hours: number[]) => hours.map((hour) => `s@2026-11-15T0${hour}:00:00.000Z`);

  it("skip: leaves out firings while the last run is active, then continues", async () => {
    const stage = await twoHours("skip");
    expect(await started(stage)).toEqual(of(1));
    await end(stage, of(1)[0]!);
    expect(await stage.poll()).toMatchObject({ found: 0 });
    await stage.clock.elapse(hourMs);
    await stage.poll();
    expect(await started(stage)).toEqual(of(1, 4));
  });

  it("allow: they run beside each other", async () => {
    expect(await started(await twoHours("allow"))).toEqual(of(1, 2, 3));
  });

  it("wait: the newest firing waits for the last run's end, and is started soon after it", async () => {
    const stage = await twoHours("wait");
    expect(await started(stage)).toEqual(of(1));
    await end(stage, of(1)[0]!);
    await stage.clock.elapse(15_000);
    await stage.poll();
    expect(await started(stage)).toEqual(of(1, 3));
  });

  it("wait for all: one after the other, none left out", async () => {
    const stage = await twoHours("wait", "all");
    for (const [k, id] of of(1, 2, 3).entries()) {
      expect(await started(stage)).toEqual(of(1, 2, 3).slice(0, k + 1));
      await end(stage, id);
      await stage.clock.elapse(15_000);
      await stage.poll();
    }
    expect(await started(stage)).toEqual(of(1, 2, 3));
  });

  it("waiting firings do not block other schedules", async () => {
    const stage = await twoHours("wait");
    await stage.schedules.create("z", report, { of: "z" }, { cron: "40 * * * *" });
    await stage.clock.elapse(10 * 60_000);
    await stage.poll(1);
    await stage.poll(1);
    expect(await started(stage)).toEqual([...of(1), "z@2026-11-15T03:40:00.000Z"]);
  });
});

describe("missed firings", () => {
  const unattended = async (hours: number, options: object) => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    await stage.schedules.create("s", report, { of: "x" }, { ...hourly, overlap: "allow", ...options });
    await stage.clock.elapse(hours * hourMs);
    await stage.poll();
    return (await started(stage)).map((id) => id.slice(2, 15));
  };

  it("latest: only the newest is made up for", async () => {
    expect(await unattended(5, {})).toEqual(["2026-11-15T05"]);
  });

  it("all: each of them, in order", async () => {
    const hours = [1, 2, 3, 4, 5].map((hour) => `2026-11-15T0${hour}`);
    expect(await unattended(5, { catchUp: "all" })).toEqual(hours);
  });

  it("none: not those, but the next; what is on time is not late", async () => {
    expect(await unattended(5, { catchUp: "none" })).toEqual([]);
    expect(await unattended(4.5, { catchUp: "none" })).toEqual(["2026-11-15T05"]);
  });

  it("what is older than the window is never made up for", async () => {
    expect(await unattended(5, { catchUp: "all", catchUpWindow: "2h" })).toEqual(["2026-11-15T04", "2026-11-15T05"]);
    expect(await unattended(5, { catchUp: "latest", catchUpWindow: "10m" })).toEqual([]);
    expect(await unattended(30, { catchUp: "latest" })).toEqual(["2026-11-16T06"]);
  });

  it("many missed firings do not delay other schedules: fifty at a time", async () => {
    const stage = await setClock("2026-11-15T00:00:30Z");
    const all = { catchUp: "all", overlap: "allow" } as const;
    await stage.schedules.create("s", report, { of: "x" }, { ...all, cron: "* * * * *" });
    await stage.clock.elapse(2 * hourMs);
    await stage.poll();
    expect(await started(stage)).toHaveLength(50);
    await stage.poll();
    await stage.poll();
    expect(await started(stage)).toHaveLength(120);
  });
});

describe("firings that fail", () => {
  it("parks and logs a spec that this process cannot read; others continue", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const { store } = stage;
    const stored = scheduleSpec();
    await store.intake.putSchedule(tenant, { id: "a", spec: stored, nextAt: 5, paused: false });
    // No store accepts such a spec: a newer version wrote it into the table.
    const newer: typeof store.read.dueSchedules = async (...requested) =>
      (await store.read.dueSchedules(...requested)).map((row) => ({
        ...row,
        spec: row.id === "a" ? JSON.stringify({ v: 2, cron: "?" }) : row.spec,
      }));
    await stage.schedules.create("b", report, { of: "x" }, hourly);
    await stage.clock.elapse(hourMs);
    const deps = stage.replica({ store: { ...store, read: { ...store.read, dueSchedules: newer } } });
    expect(await timers(deps).runOnce(1)).toEqual({ found: 1, done: 0, failed: 1, lagMs: 0 });
    expect(deps.logged).toEqual(["schedules.fire_failed", "schedules.parked"]);
    await timers(deps).runOnce(1);
    expect(await started(stage)).toEqual(["b@2026-11-15T01:00:00.000Z"]);
    const [parked] = await store.read.schedules(tenant);
    expect(parked?.spec).toBe(stored);
  });

  it("logs a firing whose run id is taken, and continues the schedule", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const id = "s@2026-11-15T01:00:00.000Z";
    await stage.store.intake.createRuns(tenant, [{ id, workflow: "mine", input: 1 }]);
    await stage.schedules.create("s", report, { of: "x" }, hourly);
    await stage.clock.elapse(hourMs);
    await stage.poll();
    const lastError = { at: Date.parse("2026-11-15T01:00Z"), code: "TAPE_RUN_CONFLICT" };
    expect(await stage.schedules.list()).toMatchObject([{ lastError, lastRun: null }]);
    await stage.clock.elapse(hourMs);
    await stage.poll();
    expect(await started(stage)).toEqual([id, "s@2026-11-15T02:00:00.000Z"]);
  });

  it("logs a firing beyond its tenant's quota, and starts it when the quota admits it", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const { store, clock } = stage;
    await store.intake.createRuns(tenant, [{ id: "other", workflow: "report", input: { of: "x" } }]);
    await store.intake.setQuota(tenant, { runs: 1 }, { by: "ann", reason: "a drill" });
    await stage.schedules.create("s", report, { of: "x" }, { ...hourly, catchUp: "all", overlap: "allow" });
    await clock.elapse(hourMs);
    const deps = stage.replica();
    await timers(deps).runOnce(10);
    expect(deps.logged).toEqual(["schedules.postponed"]);
    const at = Date.parse("2026-11-15T01:00Z");
    expect(await stage.schedules.list()).toMatchObject([
      { nextAt: at, lastRun: null, lastError: { at, code: "TAPE_QUOTA" } },
    ]);
    // Not again at once: an agenda that is always due would retry it a hundred times a second.
    expect(await timers(deps).runOnce(10)).toMatchObject({ found: 0 });
    await end(stage, "other");
    await clock.elapse(15_000);
    await timers(deps).runOnce(10);
    expect(await started(stage)).toEqual(["other", "s@2026-11-15T01:00:00.000Z"]);
    expect(deps.logged).toEqual(["schedules.postponed", "schedules.fired"]);
  });

  it("treats a firing whose run was started and deleted as done", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const id = "s@2026-11-15T01:00:00.000Z";
    await stage.store.intake.createRuns(tenant, [{ id, workflow: "report", input: { of: "x" } }]);
    await end(stage, id);
    await stage.store.intake.prune(tenant, stage.clock.wall() + 1, 10);
    await stage.schedules.create("s", report, { of: "x" }, hourly);
    await stage.clock.elapse(hourMs);
    await stage.poll();
    expect(await started(stage)).toEqual([]);
    const [view] = await stage.schedules.list();
    expect([view?.lastError, view?.nextAt]).toEqual([undefined, Date.parse("2026-11-15T02:00Z")]);
  });
});

describe("app.schedules", () => {
  it("pause: nothing fires; resume: from now on, without what was missed", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    await stage.schedules.create("s", report, { of: "x" }, { ...hourly, catchUp: "all" });
    expect(await stage.schedules.pause("s")).toMatchObject({ paused: true });
    await stage.clock.elapse(3 * hourMs);
    await stage.poll();
    expect(await started(stage)).toEqual([]);
    const next = Date.parse("2026-11-15T04:00Z");
    expect(await stage.schedules.resume("s")).toMatchObject({ paused: false, nextAt: next });
    await stage.poll();
    expect(await started(stage)).toEqual([]);
    await stage.clock.elapse(hourMs);
    await stage.poll();
    expect(await started(stage)).toEqual(["s@2026-11-15T04:00:00.000Z"]);
  });

  it("resuming what is not paused drops nothing that is due", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    await stage.schedules.create("s", report, { of: "x" }, hourly);
    await stage.clock.elapse(hourMs);
    await stage.schedules.resume("s");
    await stage.poll();
    expect(await started(stage)).toHaveLength(1);
  });

  it("create: the same again is the same; another under the same id is refused", async () => {
    const { schedules } = await setClock("2026-11-15T00:30:00Z");
    const options = { ...hourly, budget: { usd: 1.5 } };
    const made = await schedules.create("s", report, { of: "x" }, options);
    expect(made).toMatchObject({ budget: { usd: 1.5 }, overlap: "skip", catchUp: "latest", timeZone: "UTC" });
    expect(await schedules.create("s", report, { of: "x" }, options)).toEqual(made);
    const refused = { code: "TAPE_SCHEDULE_EXISTS" };
    await expect(schedules.create("s", report, { of: "y" }, options)).rejects.toMatchObject(refused);
    await expect(schedules.create("s", other, {}, options)).rejects.toMatchObject(refused);
    await expect(schedules.create("s", report, { of: "x" }, hourly)).rejects.toMatchObject(refused);
    expect(await schedules.list()).toEqual([made]);
  });

  it("update: changes what is named, counts another time from now, keeps what is due", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const { schedules, clock } = stage;
    await schedules.create("s", report, { of: "x" }, { ...hourly, budget: { usd: 2 }, labels: { a: "b" } });
    await clock.elapse(hourMs);
    const late = Date.parse("2026-11-15T01:00Z");
    expect(await schedules.update("s", { overlap: "allow" })).toMatchObject({
      overlap: "allow",
      nextAt: late,
      budget: { usd: 2 },
      labels: { a: "b" },
    });
    const start = { workflow: report, input: { of: "y" } };
    expect(await schedules.update("s", { cron: "45 * * * *", start })).toMatchObject({
      nextAt: Date.parse("2026-11-15T01:45Z"),
      input: { of: "y" },
    });
    await clock.elapse(15 * 60_000);
    await stage.poll();
    const [created] = await stage.store.read.journal(tenant, { run: "s@2026-11-15T01:45:00.000Z" });
    expect(created?.data).toMatchObject({ input: { of: "y" }, budget: { usd: 2_000_000 } });
  });

  it("upsert: creates, writes nothing for the same rule, and says what it changed of another", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const { schedules, store } = stage;
    const declare = (cron: string, of = "x") => schedules.upsert("s", report, { of }, { cron }, { by: "v2" });
    expect(await declare("0 * * * *")).toMatchObject({ created: true, changed: [] });
    const versionOf = async () => (await store.read.schedules(tenant))[0]!.version;
    const first = await versionOf();
    const same = await Promise.all([1, 2, 3].map(() => declare("0 * * * *")));
    expect(same.map(({ created, changed }) => [created, changed])).toEqual(Array(3).fill([false, []]));
    expect(await versionOf()).toBe(first);
    await schedules.pause("s");
    const both = await Promise.all([1, 2].map(() => declare("15 * * * *", "y")));
    expect(both.map(({ changed }) => changed).sort()).toEqual([[], ["input", "cron"]]);
    expect(await schedules.list()).toMatchObject([
      { cron: "15 * * * *", input: { of: "y" }, paused: true, nextAt: Date.parse("2026-11-15T01:15Z") },
    ]);
    const audit = await store.read.audit(tenant);
    expect(audit).toMatchObject([
      { by: "v2", action: "schedule.change", detail: { schedule: "s", changed: ["input", "cron"] } },
    ]);
  });

  it("upsert: another time neither loses a firing that is due nor repeats one", async () => {
    const stage = await setClock("2026-11-15T00:59:00Z");
    const declare = (cron: string) => stage.schedules.upsert("s", report, { of: "x" }, { cron, overlap: "allow" });
    await declare("0 * * * *");
    await stage.clock.elapse(70_000); // 01:00:10, due and not fired yet
    expect((await declare("0 */2 * * *")).changed).toEqual(["cron"]);
    await stage.poll();
    expect(await started(stage)).toEqual(["s@2026-11-15T01:00:00.000Z"]);
    await declare("0,1 * * * *");
    await declare("0 * * * *");
    await stage.poll();
    expect(await started(stage)).toEqual(["s@2026-11-15T01:00:00.000Z"]);
    expect(await stage.schedules.list()).toMatchObject([{ nextAt: Date.parse("2026-11-15T02:00Z") }]);
  });

  it("loses no change of two concurrent operators, and reverts no firing", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const { schedules } = stage;
    await schedules.create("s", report, { of: "x" }, hourly);
    await stage.clock.elapse(hourMs);
    await Promise.all([
      schedules.update("s", { overlap: "allow" }),
      schedules.update("s", { catchUp: "all" }),
      stage.poll(),
      schedules.update("s", { labels: { a: "b" } }),
    ]);
    await stage.poll();
    expect(await schedules.list()).toMatchObject([{ overlap: "allow", catchUp: "all", labels: { a: "b" } }]);
    expect(await started(stage)).toEqual(["s@2026-11-15T01:00:00.000Z"]);
    expect((await schedules.list())[0]?.nextAt).toBe(Date.parse("2026-11-15T02:00Z"));
  });

  it("delete: keeps its runs; a paused replica cannot fire a new schedule of the same id", async () => {
    const stage = await setClock("2026-11-15T00:30:00Z");
    const { schedules, store } = stage;
    await schedules.create("s", report, { of: "old" }, hourly);
    await stage.clock.elapse(hourMs);
    const seen = await store.read.dueSchedules(1); // the replica is paused here
    expect(await schedules.delete("s")).toBe(true);
    expect(await schedules.delete("s")).toBe(false);
    await schedules.create("s", report, { of: "new" }, hourly);
    await stage.clock.elapse(hourMs);
    const stopped = stage.replica({ store: { ...store, read: { ...store.read, dueSchedules: async () => seen } } });
    expect(await timers(stopped).runOnce(10)).toMatchObject({ found: 1, done: 0, failed: 1 });
    await stage.poll();
    const [created] = await store.read.journal(tenant, { run: "s@2026-11-15T02:00:00.000Z" });
    expect(created?.data).toMatchObject({ input: { of: "new" } });
    expect(await started(stage)).toHaveLength(1);
  });

  it("treats another tenant's schedule as absent", async () => {
    const { schedules, store } = await setClock("2026-11-15T00:30:00Z");
    await schedules.create("s", report, { of: "x" }, hourly);
    const stranger = new Schedules(store, "globex", seededRandom(1));
    expect(await stranger.list()).toEqual([]);
    await expect(stranger.pause("s")).rejects.toMatchObject({ code: "TAPE_SCHEDULE_NOT_FOUND" });
    expect(await stranger.delete("s")).toBe(false);
    expect(await schedules.list()).toMatchObject([{ paused: false }]);
  });

  it.each<[string, object, string, string]>([
    ["cron", { cron: "61 * * * *" }, "TAPE_BAD_SCHEDULE", "61"],
    ["time zone", { timeZone: "Mars/Base" }, "TAPE_BAD_SCHEDULE", "Mars/Base"],
    ["overlap", { overlap: "never" }, "TAPE_BAD_INPUT", "skip, allow, wait"],
    ["catch-up", { catchUp: "some" }, "TAPE_BAD_INPUT", "all, latest, none"],
    ["window", { catchUpWindow: "soon" }, "TAPE_BAD_INPUT", "duration"],
    ["label", { labels: { schedule: "mine" } }, "TAPE_BAD_INPUT", "schedule"],
    ["unknown option", { timezone: "UTC" }, "TAPE_BAD_INPUT", "did you mean timeZone?"],
  ])("refuses a bad %s before anything is written", async (_, bad, code, says) => {
    const { schedules } = await setClock("2026-11-15T00:30:00Z");
    const create = schedules.create("s", report, { of: "x" }, { ...hourly, ...bad });
    await expect(create).rejects.toMatchObject({ code, message: expect.stringContaining(says) });
    expect(await schedules.list()).toEqual([]);
  });

  it("rejects an id that leaves no room for the time", async () => {
    const { schedules } = await setClock("2026-11-15T00:30:00Z");
    const create = schedules.create("s".repeat(500), report, { of: "x" }, hourly);
    await expect(create).rejects.toMatchObject({ code: "TAPE_TOO_LARGE" });
  });
});

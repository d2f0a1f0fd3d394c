import { strict as assert } from "node:assert";
import type { SchedulePlan } from "../../src/model/schedule.ts";
import { type Cases, refused, scheduleSpec, spec, tenant } from "./frame.ts";
import { countOutcomes, unchanged } from "./holder.ts";
import { far, nextTimerMs } from "./waits.ts";

/** Invalid schedules, and the messages about them. */
const bad: Readonly<Record<string, [spec: string, says: RegExp]>> = {
  "no spec": ["x", /decoded/],
  "another version": [JSON.stringify({ v: 2, cron: "?" }), /version 1/],
  "a field that is missing": [JSON.stringify({ v: 1, cron: "0 3 * * *" }), /uid/],
  "an expression": [scheduleSpec("x", { cron: "61 * * * *" }), /61/],
  "an endless expression": [scheduleSpec("x", { cron: `${"1,".repeat(5_000)}1 * * * *` }), /at most 512 characters/],
  "a day that never comes": [scheduleSpec("x", { cron: "0 0 31 2 *" }), /once in ten years/],
  "a time zone": [scheduleSpec("x", { timeZone: "Mars/Base" }), /Mars/],
  "a window without end": [scheduleSpec("x", { windowMs: 1e15 }), /windowMs/],
  "a window before its firing": [scheduleSpec("x", { windowMs: -1 }), /windowMs/],
  "a time that is none": [scheduleSpec("x", { dueAt: 1.5 }), /due/],
  "a time before 1970": [scheduleSpec("x", { dueAt: -1 }), /due/],
  "an overlap": [scheduleSpec("x", { overlap: "never" as "skip" }), /overlap/],
  "more to make up for than is allowed": [
    scheduleSpec("x", { cron: "* * * * * *", catchUp: "all", windowMs: 24 * 3_600_000 }),
    /86400 firings.*at most 10000/,
  ],
};

/** Schedules whose runs could not be started. */
const unstartable: Readonly<Record<string, Partial<SchedulePlan>>> = {
  "a workflow without a name": { workflow: "" },
  "a label": { labels: { "a\0": "b" } },
  "a budget": { budget: { usd: 0.5 } },
};
export const schedules: Cases = ({ it }, fresh) => {
  it("a schedule is created, replaced under a new version, listed and deleted", async () => {
    const { store } = fresh();
    const first = await store.intake.putSchedule(tenant, {
      id: "nightly",
      spec: scheduleSpec("at three"),
      nextAt: 5,
      paused: false,
    });
    assert.deepEqual(first, {
      tenant,
      id: "nightly",
      version: 1,
      spec: scheduleSpec("at three"),
      nextAt: 5,
      paused: false,
    });
    const second = await store.intake.putSchedule(tenant, {
      id: "nightly",
      spec: scheduleSpec("at four"),
      nextAt: null,
      paused: true,
    });
    assert.deepEqual(second, {
      tenant,
      id: "nightly",
      version: 2,
      spec: scheduleSpec("at four"),
      nextAt: null,
      paused: true,
    });
    await store.intake.putSchedule("globex", { id: "nightly", spec: scheduleSpec(), nextAt: null, paused: false });
    assert.deepEqual(await store.read.schedules(tenant), [second]);
    assert.equal(await store.intake.deleteSchedule(tenant, "none"), false);
    assert.equal(await store.intake.deleteSchedule(tenant, "nightly"), true);
    assert.deepEqual(await store.read.schedules(tenant), []);
    assert.equal((await store.read.schedules("globex")).length, 1);
  });

  it("of many concurrent callers exactly one fires a schedule and starts its runs", async () => {
    const { store, another } = fresh();
    const clients = [store, await another()];
    const now = await store.read.now();
    await store.intake.putSchedule(tenant, { id: "s", spec: scheduleSpec(), nextAt: now - 10, paused: false });
    const starts = [spec({ schedule: "s" }), spec({ schedule: "s" })];
    const fire = (k: number) => clients[k % 2]!.intake.fireSchedule(tenant, "s", 1, now + far, starts);
    assert.deepEqual(countOutcomes(await Promise.all(Array.from({ length: 8 }, (_, k) => fire(k)))), {
      true: 1,
      false: 7,
    });
    const ids = (await store.read.runs(tenant, { status: ["RUNNABLE"] })).map(({ id }) => id);
    assert.deepEqual(ids.sort(), starts.map(({ id }) => id).sort());
    const [row] = await store.read.schedules(tenant);
    assert.deepEqual([row?.version, row?.nextAt], [2, now + far]);
  });

  it("a schedule that is not due, paused, changed, foreign or deleted does not fire", async () => {
    const { store } = fresh();
    const now = await store.read.now();
    const put = (id: string, nextAt: number | null, paused: boolean) =>
      store.intake.putSchedule(tenant, { id, spec: scheduleSpec(), nextAt, paused });
    await put("early", now + far, false);
    await put("paused", now - 10, true);
    await put("never", null, false);
    await put("due", now - 10, false);
    await put("later", now - 5, false);
    await unchanged(store, async () => {
      for (const id of ["early", "paused", "never", "gone"]) {
        assert.equal(await store.intake.fireSchedule(tenant, id, 1, null, [spec()]), false, id);
      }
      assert.equal(await store.intake.fireSchedule(tenant, "due", 2, null, [spec()]), false);
      assert.equal(await store.intake.fireSchedule("globex", "due", 1, null, [spec()]), false);
    });
    const due = await store.read.dueSchedules(10);
    assert.deepEqual(
      due.map(({ id }) => id),
      ["due", "later"],
    );
    assert.equal((await store.read.dueSchedules(1)).length, 1);
    assert.equal((await store.read.dueSchedules(10, tenant)).length, 2);
    assert.deepEqual(await store.read.dueSchedules(10, "globex"), []);
    assert.equal(await nextTimerMs(store, "globex"), undefined);
    assert.equal(await nextTimerMs(store), 0);
    assert.equal(await store.intake.fireSchedule(tenant, "due", 1, null, []), true);
    assert.equal(await store.intake.fireSchedule(tenant, "due", 2, null, []), false, "it has no next time");
    await put("later", null, false);
    const next = await nextTimerMs(store);
    assert.ok(next !== undefined && next > far / 2 && next <= far, "the early one is next; paused ones do not count");
  });

  it("a conditional write needs the version that was read", async () => {
    const { store, another } = fresh();
    const row = (mark: string) => ({ id: "s", spec: scheduleSpec(mark), nextAt: null, paused: false });
    const put = (mark: string, seen?: { version: number; spec: string } | null, by = store) =>
      by.intake.putSchedule(tenant, row(mark), seen);
    const conflict = { code: "TAPE_VERSION_CONFLICT" };
    await assert.rejects(put("a", { version: 1, spec: scheduleSpec("a") }), conflict, "there is none");
    const first = await put("a", null);
    assert.deepEqual([first.version, (await put("b", first)).version], [1, 2]);
    await unchanged(store, async () => {
      await assert.rejects(put("c", null), conflict, "there is one");
      await assert.rejects(put("c", first), conflict, "changed since");
      await assert.rejects(
        put("c", { version: 2, spec: scheduleSpec("a") }),
        conflict,
        "the same version of another life",
      );
    });
    const clients = [store, await another()];
    const seen = { version: 2, spec: scheduleSpec("b") };
    const writes = Array.from({ length: 8 }, (_, k) =>
      put(`w${k}`, seen, clients[k % 2]!).then(
        () => true,
        (error: { code?: string }) => error.code !== conflict.code,
      ),
    );
    assert.deepEqual(countOutcomes(await Promise.all(writes)), { true: 1, false: 7 });
  });

  it("a firing may rewrite the spec if it is unchanged", async () => {
    const { store } = fresh();
    const [a, b] = [scheduleSpec("a"), scheduleSpec("b")];
    const now = await store.read.now();
    await store.intake.putSchedule(tenant, { id: "s", spec: a, nextAt: now - 1, paused: false });
    await unchanged(store, async () => {
      const fired = await store.intake.fireSchedule(tenant, "s", 1, now - 1, [spec()], {
        from: scheduleSpec("x"),
        to: b,
      });
      assert.equal(fired, false);
    });
    assert.equal(await store.intake.fireSchedule(tenant, "s", 1, now - 1, [], { from: a, to: b }), true);
    assert.equal(await store.intake.fireSchedule(tenant, "s", 2, null, []), true);
    const [row] = await store.read.schedules(tenant);
    assert.deepEqual([row?.spec, row?.version, row?.nextAt], [b, 3, null]);
  });

  it("a firing whose runs cannot be created changes nothing", async () => {
    const { store } = fresh();
    const now = await store.read.now();
    await store.intake.putSchedule(tenant, { id: "s", spec: scheduleSpec(), nextAt: now - 1, paused: false });
    const taken = spec();
    await store.intake.createRuns(tenant, [taken]);
    await unchanged(store, async () => {
      const runs = [spec(), { ...taken, input: "another" }];
      await assert.rejects(store.intake.fireSchedule(tenant, "s", 1, null, runs), { code: "TAPE_RUN_CONFLICT" });
    });
    assert.equal(
      await store.intake.fireSchedule(tenant, "s", 1, null, [taken]),
      true,
      "the same run again is no conflict",
    );
  });

  it("a schedule that cannot fire, or fires without bound, is never written", async () => {
    const { store } = fresh();
    const now = await store.read.now();
    const good = scheduleSpec();
    await store.intake.putSchedule(tenant, { id: "s", spec: good, nextAt: now - 1, paused: false });
    await unchanged(store, async () => {
      const ways = (text: string) => [
        () => store.intake.putSchedule(tenant, { id: "s", spec: text, nextAt: now, paused: false }),
        () => store.intake.fireSchedule(tenant, "s", 1, now, [], { from: good, to: text }),
      ];
      for (const [what, [text, says]] of Object.entries(bad)) {
        for (const way of ways(text)) assert.match((await refused("TAPE_BAD_SCHEDULE", way())).message, says, what);
      }
      for (const more of Object.values(unstartable)) {
        for (const way of ways(scheduleSpec("x", more))) await refused("TAPE_BAD_INPUT", way());
      }
      const long = { id: "s".repeat(store.limits.nameLength), spec: good, nextAt: null, paused: false };
      await refused("TAPE_TOO_LARGE", store.intake.putSchedule(tenant, long));
    });
  });

  it("catching up all slots within the bound, or the latest within a year, is allowed", async () => {
    const { store } = fresh();
    const day = 24 * 3_600_000;
    const fine: readonly Partial<SchedulePlan>[] = [
      { cron: "* * * * * *", catchUp: "all", windowMs: 3_600_000 },
      { cron: "*/10 * * * * *", catchUp: "all", windowMs: day },
      { cron: "0 3 29 2 *", catchUp: "all", windowMs: 366 * day },
      { cron: "* * * * * *", catchUp: "latest", windowMs: 366 * day },
    ];
    for (const [k, more] of fine.entries()) {
      const row = { id: `s${k}`, spec: scheduleSpec("x", more), nextAt: null, paused: false };
      assert.equal((await store.intake.putSchedule(tenant, row)).version, 1);
    }
  });
};

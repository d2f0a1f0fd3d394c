import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { queueFindings } from "../../src/cli/commands/doctor-queues.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Term } from "../../src/model/lease.ts";
import type { NewRecord } from "../../src/model/records.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { ManualClock } from "../../testkit/clock.ts";
import { crossQueues } from "../kit/crossed-queues.ts";
import { program, temporaryFolder } from "./stage.ts";

const tenant = "default";
const claimant = { owner: "worker/1", label: "worker", reactor: "recovery", ttlMs: 3_600_000 };
const operator = ["--by", "ada", "--reason", "drill"];

/** A sleep lets its time pass. */
class PassingClock extends ManualClock {
  override sleep(ms: number): Promise<void> {
    return this.elapse(ms);
  }
}

async function scene() {
  const url = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
  const store = await openStore(url);
  onTestFinished(() => store.close());
  await store.intake.putQueue(tenant, "models", {
    ...{ concurrency: 2, rate: { limit: 600, perMs: 60_000, burst: 20 }, counts: "started" as const },
    perKey: { concurrency: 1 },
  });
  const tape = (...args: string[]) => program(...args, "--store", url);
  const add = async (id: string, key: string, more: object = {}): Promise<void> => {
    const [made] = await store.intake.createRuns(tenant, [
      { id, workflow: "ask", input: 1, queue: "models", key, ...more },
    ]);
    expect(made).toMatchObject({ ok: true });
  };
  return { url, store, tape, add };
}

const admit = (store: Store, nonce: bigint): Promise<Term[]> =>
  store.claim.find({
    ...{ tenant, claimant, nextReactor: "recovery", staleOf: [], limit: 10, nonce },
    ...{ workflows: ["ask"], queues: [{ name: "models", room: 10 }] },
  });

async function write(store: Store, { fence, head }: Term, ...records: NewRecord[]): Promise<void> {
  await store.fenced.append(fence, { after: head, records });
}

describe("queues on the command line", () => {
  it("lists queues and keys, longest wait first, and explains why a run waits", async () => {
    const { tape, add, store } = await scene();
    for (const [id, key] of [
      ["a", "acme"],
      ["b", "acme"],
      ["c", "globex"],
      ["d", "initech"],
    ] as const)
      await add(id, key);
    expect((await admit(store, 1n)).map(({ name }) => name)).toEqual(["a", "c"]);
    const { stdout } = await tape("queues");
    expect(stdout).toMatch(/models +2 of 2 +2 +3 +\d+ m?s +2 +600 per 1 m, at most 20 at once +started +full\n/);
    const keys = (await tape("queue", "keys", "models")).stdout.split("\n");
    expect(keys[1]).toMatch(/^acme +1 +1 /); // b has waited longest
    expect(keys[2]).toMatch(/^initech +0 +1 /);
    const explained = (await tape("queue", "explain", "b")).stdout;
    expect(explained).toMatch(/^waits in queue models, key acme for \d+ m?s \(priority 5\)\n/);
    expect(explained).toContain("queue full: 2 of 2 slots held by a, c\n");
    expect(explained).toContain("key full: 1 of 1 slots held by a\n");
    expect((await tape("queue", "explain", "a")).stdout).toMatch(/^holds a slot of queue models, key acme for/);
    const inspected = (await tape("inspect", "b")).stdout;
    expect(inspected).toMatch(/^b {2}QUEUED {2}ask\n/);
    expect(inspected).toContain("queue full: 2 of 2 slots held by a, c");
    expect((await tape("runs", "--status", "QUEUED")).stdout).toMatch(/b +QUEUED +ask +models/);
    expect((await tape("status")).stdout).toMatch(
      /QUEUED 2 .*\n[\s\S]*queue +models: 2 of 2 running, 2 waiting, oldest/,
    );
    expect(await tape("queue", "explain", "none")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("TAPE_RUN_NOT_FOUND"),
    });
    expect(await tape("queue", "keys", "none")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("TAPE_QUEUE_UNKNOWN"),
    });
  });

  it("pauses, resumes, sets and resets with a reason", async () => {
    const { tape, add } = await scene();
    await add("a", "acme");
    expect(await tape("queue", "pause", "models")).toMatchObject({ code: 2 });
    const paused = await tape("queue", "pause", "models", "--key", "acme", ...operator);
    expect(paused.code).toBe(0);
    expect((await tape("queue", "keys", "models")).stdout).toContain("paused by ada: drill");
    expect((await tape("queue", "explain", "a")).stdout).toContain("key acme is paused by ada: drill\n");
    await tape("queue", "resume", "models", "--key", "acme", ...operator);
    await tape("queue", "pause", "models", ...operator);
    expect((await tape("queues")).stdout).toMatch(/started +paused by ada: drill/);
    expect((await tape("status")).stdout).toContain("paused by ada: drill");
    await tape("queue", "resume", "models", ...operator);
    const limits = ["--concurrency", "20", "--rate", "60/1m", "--burst", "5", "--key-concurrency", "none"];
    const set = await tape("queue", "set", "models", ...limits, ...operator, "-o", "json");
    expect(JSON.parse(set.stdout)).toMatchObject({
      limits: { concurrency: 20, rate: { limit: 60, perMs: 60_000, burst: 5 } },
      override: { perKey: { concurrency: null } },
    });
    expect((await tape("queues")).stdout).toContain(
      "concurrency 20, rate 60 per 1 m, at most 5 at once, key concurrency none",
    );
    const reset = await tape("queue", "reset", "models", ...operator, "-o", "json");
    expect(JSON.parse(reset.stdout)).toMatchObject({ limits: { concurrency: 2, perKey: { concurrency: 1 } } });
    expect((await tape("audit")).stdout.match(/ada .* drill/g)).toHaveLength(6);
  });

  it.each([
    [["--concurrency", "many"], "--concurrency must be a whole number"],
    [["--rate", "600"], "--rate must be N/TIME such as 600/1m"],
    [["--burst", "5"], "--burst needs --rate"],
    [[], "give at least one of --concurrency"],
  ])("refuses queue set %j", async (options, message) => {
    const { tape } = await scene();
    expect(await tape("queue", "set", "models", ...options, ...operator)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    });
  });

  it("starts runs in a queue, later, and once per unique key", async () => {
    const { tape, store } = await scene();
    const start = (id: string, ...more: string[]) => tape("start", "ask", "--input", "1", "--id", id, ...more);
    await start("a", "--queue", "models", "--key", "acme", "--priority", "2", "--expires", "1h");
    await start("b", "--queue", "models", "--delay", "10m", "--unique", "one");
    const joined = await start("c", "--queue", "models", "--unique", "one");
    expect(joined.stdout).toBe("b  (already started)\n");
    expect(await store.read.queuePosition(tenant, "a")).toMatchObject({ key: "acme", class: 2, state: "QUEUED" });
    expect(await store.read.queuePosition(tenant, "b")).toMatchObject({ state: "DELAYED" });
    expect((await tape("queue", "explain", "b")).stdout).toMatch(/^joins queue models later\n +delayed: until /);
    const rejected = await start("d", "--queue", "models", "--unique", "one", "--on-conflict", "reject");
    expect(rejected).toMatchObject({ code: 1, stderr: expect.stringContaining("TAPE_RUN_LIVE") });
    expect(await start("e", "--on-conflict", "join")).toMatchObject({ code: 2 });
  });

  it("starts once for many starts, with signals, and names the starter", async () => {
    const { tape, store } = await scene();
    const debounce = ["--debounce", "page-7", "--debounce-wait", "5m", "--debounce-max", "1h"];
    const start = (id: string, input: string, ...more: string[]) =>
      tape("start", "ask", "--id", id, "--input", input, ...more);
    await start("first", "1", ...debounce);
    expect((await start("second", "2", ...debounce)).stdout).toBe("first  (already started)\n");
    const [created, ...moves] = await store.read.journal(tenant, { run: "first" });
    expect(created?.data).toMatchObject({ debounce: { key: "page-7", waitMs: 300_000, maxWaitMs: 3_600_000 } });
    const notes = await store.read.journal(tenant, { run: "first" }, { inbox: true });
    expect([moves, notes.map(({ kind, data }) => [kind, (data as { input: unknown }).input])]).toEqual([
      [],
      [["start.moved", 2]],
    ]);
    for (const key of ["ok", "no"]) await start("talks", "1", "--signal", `${key}={"by":"ada"}`, "--by", "bob");
    const sent = await store.read.journal(tenant, { run: "talks" }, { inbox: true });
    expect(sent.map(({ data }) => data)).toMatchObject([
      { name: "ok", value: { by: "ada" } },
      { name: "no", value: { by: "ada" } },
    ]);
    const [talks] = await store.read.journal(tenant, { run: "talks" });
    expect(talks?.data).toMatchObject({ starters: ["name:bob"] });
  });

  it.each([
    [["--debounce", "k"], "--debounce needs --debounce-wait"],
    [["--debounce-wait", "1s"], "--debounce-wait needs --debounce"],
    [["--debounce-max", "1s"], "--debounce-max needs --debounce"],
    [["--debounce", "k", "--debounce-wait", "soon"], "--debounce-wait"],
    [["--signal", "ok"], "--signal must be KEY=VALUE, not ok"],
    [["--signal", "ok={"], "--signal"],
  ])("refuses start %j", async (options, message) => {
    const { tape, store } = await scene();
    expect(await tape("start", "ask", ...options)).toMatchObject({ code: 2, stderr: expect.stringContaining(message) });
    expect(await store.read.runs(tenant)).toEqual([]);
  });

  it("doctor names slots that stuck runs hold, and queues that no process serves", async () => {
    const { tape, add, store } = await scene();
    for (const id of ["a", "b"]) await add(id, "acme");
    const [term] = await admit(store, 1n);
    await write(
      store,
      term!,
      { kind: "run.stuck", data: { reason: "no cover" } },
      { kind: "term.ended", data: { reason: "released", notesTaken: 0 } },
    );
    const findings = async () =>
      JSON.parse((await tape("doctor", "-o", "json")).stdout) as { check: string; state: string; message: string }[];
    const found = await findings();
    expect(found.find(({ check }) => check === "queue counts")).toMatchObject({ state: "ok" });
    const slots = found.find(({ check }) => check === "queue slots");
    expect(slots).toMatchObject({ state: "warn", message: expect.stringContaining("a (STUCK), and 1 run waits") });
  });

  it("explain and doctor name a cycle of queues", async () => {
    const clock = new PassingClock();
    const url = `sqlite:${join(await temporaryFolder(), "tape.db")}`;
    const store = await openStore(url, { clock });
    onTestFinished(() => store.close());
    await crossQueues(store, tenant);
    const text =
      "load.0 waits for a slot of queue cranes, which lift holds while it waits for lift.0; " +
      "lift.0 waits for a slot of queue docks, which load holds while it waits for load.0";
    const tape = (...args: string[]) => program(...args, "--store", url);
    expect((await tape("queue", "explain", "load.0")).stdout).toContain(`  cycle: ${text}\n`);
    expect((await tape("queue", "explain", "lift")).stdout).toMatch(
      /^holds a slot of queue cranes .*\n {2}cycle: load\.0 waits/,
    );
    const finding = async () =>
      (await queueFindings(store, tenant, clock)).find(({ check }) => check === "queue cycles");
    expect(await finding()).toMatchObject({ state: "ok" }); // it may still be a short wait
    await clock.elapse(20_000);
    expect(await finding()).toMatchObject({ state: "fail", message: text });
    await store.intake.cancel(tenant, "load.0", { by: "ada", reason: "drill" });
    expect(await finding()).toMatchObject({ state: "ok" });
  });

  it("doctor compares counters with runs, and finds a queue without a process", async () => {
    const clock = new PassingClock();
    const store = await openStore("memory:", { clock });
    onTestFinished(() => store.close());
    expect(await queueFindings(store, tenant, clock)).toEqual([]);
    await store.intake.putQueue(tenant, "models", { concurrency: 1, counts: "running" });
    await store.intake.createRuns(tenant, [{ id: "a", workflow: "ask", input: 1, queue: "models" }]);
    await clock.elapse(20_000);
    const found = await queueFindings(store, tenant, clock);
    expect(found.map(({ check, state }) => `${check} ${state}`)).toEqual([
      ...["queue counts ok", "queue slots ok", "queue cycles ok", "queue processes fail"],
    ]);
    expect(found[3]!.message).toBe("1 run waits in queue models, which no process serves");
    await store.intake.reportProcess(tenant, { owner: "w", label: "w", body: { queues: ["model"] } });
    expect((await queueFindings(store, tenant, clock))[3]!.message).toContain("did you mean model?");
    await store.intake.reportProcess(tenant, { owner: "w", label: "w", body: { queues: ["models"] } });
    expect((await queueFindings(store, tenant, clock))[3]).toMatchObject({ state: "ok" });
    const miscounted: Store["read"]["queuePartitions"] = async (...args) =>
      (await store.read.queuePartitions(...args)).map((key) => ({ ...key, running: 1 }));
    const broken = { ...store, read: { ...store.read, queuePartitions: miscounted } };
    expect((await queueFindings(broken, tenant, clock))[0]).toMatchObject({
      state: "fail",
      message: "queue models, key (no key): counted 1 running, found 0",
    });
  });
});

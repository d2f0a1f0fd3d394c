import { describe, expect, it } from "vitest";
import { buildRunner } from "../../examples/reactors/app/agent.ts";
import { reapOnce } from "../../examples/reactors/app/reap.ts";
import { Tape } from "../../src/host/tape.ts";
import { customReactor, type ReactorContext } from "../../src/reactor/custom.ts";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import { record } from "../../testkit/conformance/frame.ts";
import { armed, begin, confirmed, decided } from "../../testkit/conformance/holder.ts";
import { calm, type Replica, setStage, signal, tenant, waiting } from "./stage.ts";

const nothing = { found: 0, done: 0, failed: 0, lagMs: 0 };
const on = (deps: Replica, handler: Parameters<typeof customReactor<string>>[0]["handler"], more: object = {}) =>
  customReactor<string>({ name: "mine", app: "app", handler, ...deps, ...more });

describe("a custom reactor", () => {
  it("receives the handle and its context, under a lease that is released", async () => {
    const { store, replica } = await setStage();
    const deps = replica();
    let received: ReactorContext | undefined;
    let held: string | null | undefined;
    const reactor = on(deps, async (app, context) => {
      expect(app).toBe("app");
      received = context;
      held = (await store.read.lease(tenant, { name: "reactor mine" }))?.owner;
      return 3;
    });
    expect(await reactor.runOnce(7)).toEqual({ found: 3, done: 3, failed: 0, lagMs: 0 });
    expect([received?.name, received?.limit, received?.abortSignal.aborted]).toEqual(["mine", 7, true]); // over, so aborted
    expect(held).toBe(deps.keeper.identity.owner);
    expect((await store.read.lease(tenant, { name: "reactor mine" }))?.owner).toBeNull();
  });

  it.each([
    [undefined, nothing],
    [{ done: 2 }, { found: 2, done: 2, failed: 0, lagMs: 0 }],
    [
      { done: 1, failed: 2, lagMs: 9 },
      { found: 3, done: 1, failed: 2, lagMs: 9 },
    ],
    [{ found: 5 }, { ...nothing, found: 5 }],
  ])("may answer %j", async (answer, expected) => {
    const { replica } = await setStage();
    expect(await on(replica(), () => answer).runOnce(1)).toEqual(expected);
  });

  it("runs on one replica at a time", async () => {
    const { replica } = await setStage();
    const answer = signal();
    let calls = 0;
    const handler = async () => {
      calls++;
      await answer.come;
      return 1;
    };
    const [a, b] = [on(replica(), handler), on(replica(), handler)];
    const first = a.runOnce(1);
    await calm();
    expect(await b.runOnce(1)).toEqual(nothing);
    expect(calls).toBe(1);
    answer.give();
    expect(await first).toMatchObject({ done: 1 });
    expect(await b.runOnce(1)).toMatchObject({ done: 1 });
  });

  it("blocks other replicas after a crash only until its lease expires", async () => {
    const { replica, clock } = await setStage();
    const dead = replica();
    void on(dead, () => new Promise<undefined>(() => {})).runOnce(1);
    await calm();
    dead.keeper.close();
    const other = on(replica(), () => 1);
    expect(await other.runOnce(1)).toEqual(nothing);
    await clock.elapse(30_000);
    expect(await other.runOnce(1)).toMatchObject({ done: 1 });
  });

  it("loses its lease if it renews without progress for longer than maxStall", async () => {
    const { replica, clock, store } = await setStage();
    const idle = replica();
    const aborted = signal<boolean>();
    const never = (_: string, { abortSignal }: ReactorContext) =>
      new Promise<undefined>(() => abortSignal.addEventListener("abort", () => aborted.give(true)));
    void on(idle, never, { maxStallMs: 60_000 }).runOnce(1);
    await calm();
    const busy = replica();
    let pages = 0;
    const reports = async (_: string, { progress }: ReactorContext) => {
      for (; pages < 6; pages++) {
        progress(`page ${pages}`);
        await clock.sleep(30_000);
      }
      return pages;
    };
    const other = customReactor({ ...busy, name: "busy", app: "app", handler: reports, maxStallMs: 60_000 }).runOnce(1);
    for (let spent = 0; spent < 200_000; spent += 5_000) {
      await clock.elapse(5_000);
      await calm();
    }
    expect(await aborted.come).toBe(true);
    expect(await other).toMatchObject({ done: 6 });
    expect(await on(busy, () => 1).runOnce(1)).toMatchObject({ done: 1 });
    const [first] = await store.read.terms(tenant, { name: "reactor mine" });
    expect(first?.endReason).toBe("stalled");
  });

  it("releases the lease and retries after a backoff when the handler throws", async () => {
    const { store, replica, clock } = await setStage();
    const deps = replica();
    let calls = 0;
    const bad = on(
      deps,
      () => {
        if (++calls < 3) throw new Error("rotten");
        return 1;
      },
      { intervalMs: 60_000 },
    );
    let good = 0;
    const fine = customReactor({ ...deps, name: "fine", app: 0, handler: () => void good++, intervalMs: 1_000 });
    const loop = new ReactorLoop({ reactors: [bad, fine], store, clock, log: deps.log });
    await loop.start();
    await clock.elapse(400);
    expect([calls, (await store.read.lease(tenant, { name: "reactor mine" }))?.owner]).toEqual([1, null]);
    await clock.elapse(15_000);
    expect(loop.stats.mine).toMatchObject({ faults: 2, done: 1 });
    expect(good).toBeGreaterThan(2);
    expect(deps.logged).toContain("reactor.failed");
    await loop.stop();
  });

  it("keeps its interval, whatever it did and whatever wakes it", async () => {
    const { store, replica, clock } = await setStage();
    const deps = replica();
    let calls = 0;
    const mine = on(deps, () => ++calls, { intervalMs: 60_000 });
    const tuning = { mine: { intervalMs: 5_000, idleMs: 5_000 } };
    const loop = new ReactorLoop({ reactors: [mine], store, clock, log: deps.log, tuning: tuning });
    await loop.start();
    await clock.elapse(1_000);
    await waiting(store); // every write wakes all reactors
    await clock.elapse(58_000);
    expect(calls).toBe(1);
    await clock.elapse(6_000);
    expect(calls).toBe(2);
    await clock.elapse(50_000);
    expect(calls).toBe(2);
    await loop.stop();
  });

  it("is called exactly once in an interval, however long it is", async () => {
    const { store, replica, clock } = await setStage();
    const deps = replica();
    const at: number[] = [];
    const mine = on(deps, () => void at.push(clock.mono()), { intervalMs: 3_600_000 });
    const tuning = { mine: { intervalMs: 100, idleMs: 3_600_000 } };
    const loop = new ReactorLoop({ reactors: [mine], store, clock, log: deps.log, tuning });
    await loop.start();
    await clock.elapse(5 * 3_600_000 + 1_000);
    await loop.stop();
    expect(at.slice(1).map((now, k) => now - at[k]!)).toEqual(Array(5).fill(3_600_000));
    expect(loop.stats.mine!.polls).toBe(6);
  });

  it("pauses by `takeover` while another replica runs it", async () => {
    const { store, replica, clock } = await setStage();
    const holder = await replica().keeper.acquire("reactor mine");
    const deps = replica();
    let calls = 0;
    const mine = on(deps, () => void calls++, { takeover: { baseMs: 2_000, capMs: 8_000 } });
    const loop = new ReactorLoop({ reactors: [mine], store, clock, log: deps.log });
    await loop.start();
    await clock.elapse(28_000); // pauses of at most 2, 4, 8, 8 s; at least half of each
    expect(loop.stats.mine!.polls).toBeGreaterThanOrEqual(5);
    expect(loop.stats.mine!.polls).toBeLessThanOrEqual(9);
    await holder!.release();
    await clock.elapse(8_000);
    expect(calls).toBeGreaterThan(0);
    await loop.stop();
  });

  it("is aborted at a stop, and awaited", async () => {
    const { store, replica, clock } = await setStage();
    const deps = replica();
    const stopping = new AbortController();
    let ended = false;
    const mine = on(
      deps,
      async (_app, { abortSignal }) => {
        await new Promise((resolve) => abortSignal.addEventListener("abort", resolve));
        ended = true;
        return 1;
      },
      { stopping: stopping.signal },
    );
    const loop = new ReactorLoop({ reactors: [mine], store, clock, log: deps.log });
    await loop.start();
    await calm();
    stopping.abort();
    await loop.stop();
    expect([ended, (await store.read.lease(tenant, { name: "reactor mine" }))?.owner]).toEqual([true, null]);
  });

  it("escalates an obligation that is due for a day once, as in the docs", async () => {
    const { store, replica, clock } = await setStage();
    const run = await begin(store);
    await run.write(...confirmed(0), armed(0, { name: "wire" }));
    await run.write(decided("failed"), record("run.compensating", {}));
    const app = await Tape.open({ store, runner: buildRunner(), tenant, clock, work: false });
    const reaper = customReactor({ ...replica(), name: "reap-aged-obligations", app, handler: reapOnce });
    await clock.elapse(23 * 3_600_000);
    expect(await reaper.runOnce(50)).toEqual(nothing);
    await clock.elapse(3_600_000);
    expect(await reaper.runOnce(50)).toMatchObject({ found: 1, done: 1 });
    expect(await reaper.runOnce(50)).toMatchObject({ found: 1, done: 1 });
    const escalated = await app.runs.list({ workflow: "escalate" });
    expect(escalated.map(({ id }) => id)).toEqual([`aged-${run.id}-0-1`]);
    await app.close();
  });
});

describe("tuning", () => {
  it("gives each reactor its own batch, concurrency and pause", async () => {
    const { store, replica, clock, wire } = await setStage();
    const answers = Array.from({ length: 5 }, () => signal());
    let called = 0;
    const deps = replica({ effects: [wire({ timeout: "10m" }, () => answers[called++]!.come)] });
    let polls = 0;
    const idle = { name: "idle", runOnce: async () => ({ ...nothing, found: polls++ * 0 }) };
    const tuning = { outbox: { batch: 2, concurrency: 3, perConnector: 3 }, idle: { intervalMs: 50, idleMs: 50 } };
    for (let k = 0; k < 5; k++) await waiting(store);
    const loop = new ReactorLoop({ reactors: [outbox(deps), idle], store, clock, log: deps.log, tuning: tuning });
    await loop.start();
    await clock.elapse(1_000);
    expect([called, loop.stats.outbox?.busy]).toEqual([3, 3]);
    expect(polls).toBeGreaterThanOrEqual(20);
    for (const answer of answers) answer.give();
    await clock.elapse(1_000);
    expect(called).toBe(5);
    await loop.stop();
  });

  it("applies the backoff and the maximum attempts of an item", async () => {
    const { store, replica, clock } = await setStage();
    const again = { backoff: { baseMs: 100, capMs: 100 }, maxAttempts: 3 };
    const deps = { ...replica(), retry: again };
    await waiting(store); // no process here has the effect
    const reactor = outbox(deps);
    const found: number[] = [];
    for (let k = 0; k < 4; k++) {
      found.push((await reactor.runOnce(10)).found);
      await clock.elapse(100);
    }
    expect(found).toEqual([1, 1, 1, 0]);
    expect(deps.logged.filter((event) => event === "reactor.item_parked")).toHaveLength(1);
    await clock.elapse(3_600_000);
    expect(await reactor.runOnce(10)).toMatchObject({ found: 1 });
  });
});

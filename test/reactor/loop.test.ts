import { describe, expect, it } from "vitest";
import { ReactorLoop } from "../../src/reactor/loop.ts";
import { outbox } from "../../src/reactor/outbox.ts";
import type { Reactor, ReactorCounts } from "../../src/reactor/reactor.ts";
import { timers } from "../../src/reactor/timers.ts";
import { NotSent } from "../../src/sdk/outcomes.ts";
import { claimant, heldRun, record } from "../../testkit/conformance/frame.ts";
import { begin } from "../../testkit/conformance/holder.ts";
import { calm, type Stage, setStage, signal, tenant, waiting } from "./stage.ts";

const counts = (found: number, done = found): ReactorCounts => ({ found, done, failed: found - done, lagMs: 0 });

/** A loop that is stopped before the test ends, whatever happens. */
async function running<T>(
  stage: Stage,
  reactors: readonly Reactor[],
  work: (loop: ReactorLoop) => Promise<T>,
): Promise<T> {
  const { store, clock } = stage;
  const loop = new ReactorLoop({ reactors, store, clock, log: stage.replica().log });
  await loop.start();
  try {
    return await work(loop);
  } finally {
    await loop.stop();
  }
}

describe("the loop", () => {
  it("works at once on what a wake hint names", async () => {
    const stage = await setStage();
    const deps = stage.replica({ effects: [stage.wire()] });
    await running(stage, [outbox(deps)], async (loop) => {
      await calm();
      await waiting(stage.store);
      await calm();
      expect(stage.world).toHaveLength(1);
      expect(loop.stats.outbox).toMatchObject({ found: 1, done: 1, failed: 0, faults: 0, busy: 0 });
    });
  });

  it("polls at most once in five seconds without work", async () => {
    const stage = await setStage();
    let polls = 0;
    const idle = { name: "idle", runOnce: async () => counts(polls++ * 0) };
    await running(stage, [idle], async () => {
      await stage.clock.elapse(60_000);
      polls = 0;
      await stage.clock.elapse(60_000);
      expect(polls).toBeLessThanOrEqual(12);
      expect(polls).toBeGreaterThanOrEqual(11);
    });
  });

  it("has a pulse: when a poll last ended, also a failed one, and how often one does", async () => {
    const stage = await setStage();
    const { promise: hanging, resolve: free } = Promise.withResolvers<ReactorCounts>();
    let hangs = false;
    const own: Reactor = {
      name: "own",
      runOnce: () => (hangs ? hanging : Promise.reject(new Error("no connection"))),
    };
    await running(stage, [own], async (loop) => {
      await stage.clock.elapse(60_000);
      expect(loop.pulse.pollEveryMs).toBe(5_000);
      expect(stage.clock.mono() - loop.pulse.polledAt).toBeLessThan(6_000);
      hangs = true;
      await stage.clock.elapse(60_000);
      expect(stage.clock.mono() - loop.pulse.polledAt).toBeGreaterThan(50_000);
      free(counts(0));
    });
  });

  it("keeps an interval above five seconds, with up to a tenth of jitter", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const at: number[] = [];
    const idle = { name: "idle", runOnce: async () => counts(at.push(clock.mono()) * 0) };
    const { log, random } = stage.replica();
    const loop = new ReactorLoop({ reactors: [idle], store, clock, random, log, idleMs: 60_000 });
    await loop.start();
    await clock.elapse(1_200_000);
    await loop.stop();
    const pauses = at.slice(1).map((now, k) => now - at[k]!);
    const idling = pauses.slice(10); // the first pauses double from 100 ms on
    expect(idling.length).toBeGreaterThan(15);
    expect(Math.min(...idling)).toBeGreaterThanOrEqual(54_000);
    expect(Math.max(...idling)).toBeLessThanOrEqual(60_000);
    expect(new Set(idling).size).toBeGreaterThan(10);
  });

  it("asks the agenda once for all reactors on it, by the shortest of their intervals", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    let queries = 0;
    const read = {
      ...store.read,
      agenda: (...args: Parameters<typeof store.read.agenda>) => {
        queries++;
        return store.read.agenda(...args);
      },
    };
    const counting = Object.assign(Object.create(store) as typeof store, { read });
    const deps = stage.replica();
    const tuning = { outbox: { idleMs: 20_000 }, timers: { idleMs: 60_000 } };
    const reactors = [outbox(deps), timers(deps)];
    const loop = new ReactorLoop({ reactors, store: counting, clock, log: deps.log, tuning });
    await loop.start();
    await clock.elapse(600_000);
    queries = 0;
    await clock.elapse(600_000);
    await loop.stop();
    expect(queries).toBe(30);
  });

  it("checks an expired lease within 100 ms, and pauses after a race that it lost", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const { id } = await heldRun(store, {}, claimant(undefined, { ttlMs: 10_000 }));
    const deps = stage.replica();
    const at: number[] = [];
    const late: Reactor = { name: "outbox", onAgenda: true, runOnce: async () => counts(at.push(clock.mono()) * 0) };
    const takeover = { baseMs: 2_000, capMs: 4_000 };
    const loop = new ReactorLoop({ reactors: [late], store, clock, random: deps.random, log: deps.log, takeover });
    await loop.start();
    await clock.elapse(9_999);
    const before = at.length;
    await clock.elapse(101);
    expect(at.length).toBe(before + 1); // this process has no reactor for runs: it finds nothing
    await clock.elapse(25_000);
    const pauses = at.slice(before).map((now, k, all) => now - (all[k - 1] ?? now));
    expect(pauses.slice(1).length).toBeGreaterThan(2);
    expect(Math.min(...pauses.slice(1))).toBeGreaterThanOrEqual(1_000);
    expect((await store.read.run(tenant, id))?.lease).toMatchObject({ owner: expect.any(String) });
    await loop.stop();
  });

  it("polls exactly when a backoff that it has set ends", async () => {
    const stage = await setStage();
    let tries = 0;
    const wire = stage.wire({ retry: { attempts: 2, base: "3s" } }, () => {
      if (++tries === 1) throw new NotSent();
    });
    const deps = stage.replica({ effects: [wire] });
    await running(stage, [outbox(deps)], async () => {
      await waiting(stage.store);
      await calm();
      expect(tries).toBe(1);
      await stage.clock.elapse(3_001);
      expect(tries).toBe(2);
    });
  });

  it("fires a timer when it is due, neither before nor at the next poll", async () => {
    const stage = await setStage();
    await running(stage, [timers(stage.replica())], async () => {
      await stage.clock.elapse(60_000);
      const run = await begin(stage.store);
      await run.write(record("timer.set", { pos: 0, purpose: "sleep", delayMs: 1_234 }));
      await stage.clock.elapse(1_233);
      expect((await run.view()).notes).toBe(0);
      await stage.clock.elapse(1);
      expect((await run.view()).notes).toBe(1);
    });
  });

  it("claims more items while one is slow, up to the batch", async () => {
    const stage = await setStage();
    const answers = [1, 2, 3].map(() => signal());
    let called = 0;
    const deps = stage.replica({ effects: [stage.wire({ timeout: "10m" }, () => answers[called++]!.come)] });
    const { store, clock } = stage;
    const loop = new ReactorLoop({ reactors: [outbox(deps)], store, clock, log: deps.log, batch: 2 });
    await loop.start();
    for (let k = 0; k < 3; k++) {
      await waiting(store);
      await calm();
    }
    expect(called).toBe(2);
    expect(loop.stats.outbox).toMatchObject({ busy: 2 });
    answers[0]!.give();
    await calm();
    expect(called).toBe(3);
    for (const answer of answers) answer.give();
    await loop.stop();
    expect(loop.stats.outbox).toMatchObject({ found: 3, done: 3, busy: 0 });
  });

  it("repeats a failed poll later; the other reactors continue", async () => {
    const stage = await setStage();
    let polls = 0;
    const bad = {
      name: "bad",
      runOnce: async (): Promise<ReactorCounts> => {
        if (++polls < 3) throw new Error("the store is away");
        return counts(0);
      },
    };
    let good = 0;
    await running(stage, [bad, { name: "good", runOnce: async () => counts(good++ < 5 ? 1 : 0) }], async (loop) => {
      await stage.clock.elapse(2_000);
      expect(loop.stats.bad).toMatchObject({ faults: 2 });
      expect(loop.stats.good).toMatchObject({ found: 5 });
      expect(polls).toBeGreaterThanOrEqual(3);
    });
  });

  it("does not busy-loop over work that it finds and cannot do", async () => {
    const stage = await setStage();
    let polls = 0;
    const stubborn = { name: "timers", runOnce: async () => counts(1 + polls++ * 0, 0) };
    const run = await begin(stage.store);
    await run.write(record("timer.set", { pos: 0, purpose: "sleep", delayMs: 1 }));
    await running(stage, [stubborn], async () => {
      await stage.clock.elapse(10_000);
      expect(polls).toBeLessThan(20);
    });
  });

  it("stop claims nothing more and waits for work in progress, within its bound", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    const answer = signal();
    const deps = stage.replica({ effects: [stage.wire({ timeout: "10m" }, () => answer.come)] });
    const loop = new ReactorLoop({ reactors: [outbox(deps)], store, clock, log: deps.log, drainMs: 5_000 });
    await loop.start();
    await waiting(store);
    await calm();
    let over = false;
    const stopping = loop.stop().then(() => {
      over = true;
    });
    await waiting(store);
    await clock.elapse(4_000);
    expect([over, stage.world.length]).toEqual([false, 1]);
    await clock.elapse(1_000);
    await stopping;
    expect(stage.world).toHaveLength(1);
    answer.give();
    await calm();
  });

  it("treats repeated starts and stops as one, and rejects a start after a stop", async () => {
    const stage = await setStage();
    const { store, clock } = stage;
    let polls = 0;
    const reactors = [{ name: "idle", runOnce: async () => counts(polls++ * 0) }];
    const make = () => new ReactorLoop({ reactors, store, clock, log: stage.replica().log });
    const loop = make();
    await Promise.all([loop.start(), loop.start()]);
    await calm();
    expect(polls).toBe(1);
    await Promise.all([loop.stop(), loop.stop()]);
    await expect(loop.start()).rejects.toThrow("create a new one");
    const other = make();
    await other.stop();
    await expect(other.start()).rejects.toThrow("create a new one");
    expect(polls).toBe(1);
  });
});

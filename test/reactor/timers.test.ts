import { describe, expect, it } from "vitest";
import { timers } from "../../src/reactor/timers.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { record } from "../../testkit/conformance/frame.ts";
import { begin, type Holder, hold } from "../../testkit/conformance/holder.ts";
import { calm, mortal, setStage, signal, tenant, ttl } from "./stage.ts";

const none = { found: 0, done: 0, failed: 0, lagMs: 0 };

const fired = async (run: Holder): Promise<unknown[]> =>
  (await run.store.read.journal(tenant, { run: run.id }, { inbox: true })).map(({ kind, data }) => [kind, data]);

type Purpose = "sleep" | "gate_timeout" | "redrive" | "reconcile";

/** A held run with one timer, due in 10 ms. */
async function dueOne(store: Store, purpose: Purpose): Promise<Holder> {
  const run = await begin(store);
  await run.write(
    purpose === "gate_timeout"
      ? record("gate.opened", { pos: 0, name: "ok", timeoutMs: 10 })
      : record("timer.set", { pos: 0, purpose, delayMs: 10 }),
  );
  return run;
}

describe("timers", () => {
  it.each(["sleep", "redrive", "reconcile"] as const)(
    "%s: never early, once, and the run is woken",
    async (purpose) => {
      const { store, replica, clock } = await setStage();
      const run = await begin(store);
      await run.write(record("timer.set", { pos: 4, purpose, delayMs: 1_000 }));
      await run.release();
      const reactor = timers(replica());
      await clock.elapse(999);
      expect(await reactor.runOnce(10)).toEqual(none);
      expect((await run.view()).status).toBe("WAITING");
      await clock.elapse(251);
      expect(await reactor.runOnce(10)).toEqual({ found: 1, done: 1, failed: 0, lagMs: 250 });
      expect(await fired(run)).toEqual([["timer.fired", { pos: 4, purpose }]]);
      expect((await run.view()).status).toBe("RUNNABLE");
      expect(await reactor.runOnce(10)).toEqual(none);
    },
  );

  it("gate_timeout: fired when the gate is open, cancelled when it was answered", async () => {
    const { store, replica, clock } = await setStage();
    const [open, answered] = [await begin(store), await begin(store)];
    for (const run of [open, answered]) await run.write(record("gate.opened", { pos: 0, name: "ok", timeoutMs: 500 }));
    await answered.write(record("gate.resolved", { pos: 0, to: "RECEIVED", value: true }));
    await clock.elapse(500);
    expect(await timers(replica()).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await fired(open)).toEqual([["timer.fired", { pos: 0, purpose: "gate_timeout" }]]);
    expect(await fired(answered)).toEqual([]);
  });

  it("two replicas on many timers: each is fired by one", async () => {
    const { store, replica, clock } = await setStage();
    const run = await begin(store);
    for (let pos = 0; pos < 20; pos++) await run.write(record("timer.set", { pos, purpose: "sleep", delayMs: 10 }));
    await clock.elapse(10);
    const rounds = await Promise.all([timers(replica()).runOnce(100), timers(replica()).runOnce(100)]);
    expect(rounds.reduce((sum, { done }) => sum + done, 0)).toBe(20);
    expect(await fired(run)).toHaveLength(20);
  });

  describe.each(["sleep", "gate_timeout", "redrive", "reconcile"] as const)("%s", (purpose) => {
    it("two replicas on one timer: one fires it", async () => {
      const { store, replica, clock } = await setStage();
      const run = await dueOne(store, purpose);
      await clock.elapse(10);
      // All replicas have found it before the first one fires it.
      const found = signal();
      const late: typeof store.read.dueTimers = async (...of) => {
        const due = await store.read.dueTimers(...of);
        await found.come;
        return due;
      };
      const slow = { ...store, read: { ...store.read, dueTimers: late } };
      const rounds = [1, 2, 3].map(() => timers(replica({ store: slow })).runOnce(10));
      await calm();
      found.give();
      const counts = await Promise.all(rounds);
      expect(counts.map((count) => count.found)).toEqual([1, 1, 1]);
      expect(counts.reduce((sum, { done }) => sum + done, 0)).toBe(1);
      expect(await fired(run)).toEqual([["timer.fired", { pos: 0, purpose }]]);
    });

    it.each(["before", "after"] as const)(
      "a crash %s the firing transaction loses nothing and fires nothing twice",
      async (when) => {
        const { store, replica, clock } = await setStage();
        const run = await dueOne(store, purpose);
        await run.release();
        await clock.elapse(10);
        const mine = mortal(store);
        mine.dieAt("intake.fireTimer", when);
        void timers(replica({ store: mine.store })).runOnce(10);
        await mine.died;
        // No lease was held: the next poll continues at once.
        expect(await timers(replica()).runOnce(10)).toMatchObject({ found: when === "before" ? 1 : 0 });
        expect(await fired(run)).toHaveLength(1);
        expect((await hold(store, run.id)).term.notes).toBe(1);
      },
    );
  });

  it("leaves a timer due after a crash between finding and firing it", async () => {
    const { store, replica, clock } = await setStage();
    const run = await dueOne(store, "sleep");
    await clock.elapse(10);
    const mine = mortal(store);
    mine.dieAt("read.dueTimers", "after");
    void timers(replica({ store: mine.store })).runOnce(10);
    await mine.died;
    expect(await timers(replica()).runOnce(10)).toMatchObject({ found: 1, done: 1 });
    expect(await fired(run)).toHaveLength(1);
  });

  it("does not fire a timer whose gate was answered during a long pause", async () => {
    const { store, replica, clock } = await setStage();
    const run = await dueOne(store, "gate_timeout");
    await clock.elapse(10);
    const awake = signal();
    const fireTimer: typeof store.intake.fireTimer = async (of, timer) => {
      await awake.come;
      return store.intake.fireTimer(of, timer);
    };
    const paused = { ...store, intake: { ...store.intake, fireTimer } };
    const round = timers(replica({ store: paused })).runOnce(10);
    await clock.elapse(ttl * 2);
    await run.write(record("gate.resolved", { pos: 0, to: "RECEIVED", value: true }));
    awake.give();
    expect(await round).toMatchObject({ found: 1, done: 0, failed: 0 });
    expect(await fired(run)).toEqual([]);
  });

  it("leaves another tenant's timers to that tenant's process", async () => {
    const { store, replica, clock } = await setStage();
    const run = await dueOne(store, "sleep");
    await clock.elapse(10);
    expect(await timers({ ...replica(), tenant: "globex" }).runOnce(10)).toEqual(none);
    expect(await fired(run)).toEqual([]);
    expect(await timers(replica()).runOnce(10)).toMatchObject({ done: 1 });
  });

  it("fires the timer of an unserved run, which then waits visibly", async () => {
    const { store, replica, clock } = await setStage();
    const run = await dueOne(store, "sleep");
    await run.release();
    await clock.elapse(10);
    expect(await timers(replica()).runOnce(10)).toMatchObject({ done: 1 });
    expect((await run.view()).status).toBe("RUNNABLE");
    expect(await store.read.unserved([], 0, tenant)).toMatchObject([{ workflow: "w", runs: 1 }]);
  });

  it("fires other timers when one cannot be fired", async () => {
    const { store, replica, clock } = await setStage();
    const [bad, good] = [await begin(store), await begin(store)];
    for (const run of [bad, good]) await run.write(record("timer.set", { pos: 0, purpose: "sleep", delayMs: 10 }));
    await clock.elapse(10);
    const fireTimer: typeof store.intake.fireTimer = (of, timer) =>
      timer.run === bad.journal ? Promise.reject(new Error("rotten")) : store.intake.fireTimer(of, timer);
    const deps = replica({ store: { ...store, intake: { ...store.intake, fireTimer } } });
    expect(await timers(deps).runOnce(10)).toMatchObject({ found: 2, done: 1, failed: 1 });
    expect(await fired(good)).toHaveLength(1);
  });
});

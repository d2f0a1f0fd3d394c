import { describe, expect, it } from "vitest";
import {
  beat,
  calm,
  changesOf,
  codeOf,
  expectLost,
  granted,
  name,
  setStage,
  storyOf,
  tenant,
  trust,
  ttl,
  writeAs,
} from "./stage.ts";

async function held() {
  const stage = await setStage();
  const keeper = stage.keeper();
  const lease = await granted(keeper.tryAcquire(name));
  const stateOf = async () => (await stage.store.read.lease(tenant, { name }))?.state;
  return { ...stage, keeper, rivals: stage.keeper("b"), lease, changes: changesOf(lease, stage.now), stateOf };
}

describe("release", () => {
  it("frees the lease, increments its token, and writes the holder's own stats into the term history", async () => {
    const { clock, store, lease, changes, terms } = await held();
    await clock.elapse(2 * beat + 1_000);
    lease.progress("page 7");
    expect(await lease.release()).toBe(true);
    const row = await store.read.lease(tenant, { name });
    expect([row?.state, row?.token]).toEqual(["FREE", 2n]);
    expect(changes.map(([, to]) => to)).toEqual(["lost"]);
    const figures = { endReason: "released", renewals: 2, longestGapMs: beat, progress: 1, progressNote: "page 7" };
    expect(await terms()).toMatchObject([figures]);
  });

  it("a write after the holder's own release is refused, and so is a renewal", async () => {
    const { store, probe, lease } = await held();
    await lease.release();
    expect(await codeOf(writeAs(store, lease))).toBe("TAPE_FENCED");
    expect(await lease.renew()).toBe("lost");
    expect(probe.renewals).toEqual([]); // not even sent
  });

  it("the holder stops believing when it sends the release, not when the result arrives", async () => {
    const { clock, probe, rivals, lease } = await held();
    const waiting = rivals.acquire(name);
    await calm();
    probe.next.append.push({ lateMs: 5_000 });
    const released = lease.release();
    expectLost(lease);
    await calm();
    (await granted(waiting)).assert(); // the successor works before the result has reached the predecessor
    await clock.elapse(5_000);
    expect(await released).toBe(true);
  });

  it("releasing twice has the effect of releasing once", async () => {
    const { probe, lease, changes, terms } = await held();
    expect(await Promise.all([lease.release(), lease.release("drained")])).toEqual([true, true]);
    expect(await lease.release()).toBe(true);
    expect(probe.appends).toBe(1);
    expect(changes).toHaveLength(1);
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", "released"]]);
  });

  it.each(["after", "before", "vanished", "busy"] as const)(
    "a lost result or a refusal (%s) is followed by another attempt",
    async (fate) => {
      const { clock, probe, lease, stateOf, terms } = await held();
      probe.next.append.push(fate);
      const released = lease.release();
      await clock.elapse(1_000);
      expect(await released).toBe(true);
      expect(await stateOf()).toBe("FREE");
      expect(storyOf(await terms())).toEqual([[1n, "a", "start", "released"]]);
      expect(probe.appends).toBe(2);
    },
  );

  it("a stale release after a takeover changes nothing", async () => {
    const { clock, rivals, lease, stateOf, terms, logged } = await held();
    const rival = await rivals.takeover(name, "ann", "test");
    expect(await lease.release()).toBe(false);
    expect(logged).toContain("lease.release_failed");
    expect(await stateOf()).toBe("HELD");
    await clock.elapse(ttl * 2);
    rival.assert();
    expect(storyOf(await terms())).toEqual([
      [1n, "a", "start", "manual"],
      [2n, "b", "manual", undefined],
    ]);
  });

  it("a takeover between two attempts of a release is not mistaken for its success", async () => {
    const { clock, probe, rivals, lease } = await held();
    probe.next.append.push("before");
    const released = lease.release();
    await calm();
    await rivals.takeover(name, "ann", "test");
    await clock.elapse(1_000);
    expect(await released).toBe(false);
  });

  it("an orphaned renewal that arrives after the release restores nothing", async () => {
    const { clock, store, probe, lease, changes, stateOf, logged } = await held();
    let arrive = () => {};
    probe.next.renew.push({ until: new Promise((resolve) => (arrive = resolve)) });
    await clock.elapse(beat);
    expect(probe.renewals).toHaveLength(1);
    expect(await lease.release()).toBe(true);
    arrive();
    await calm();
    expect(await stateOf()).toBe("FREE");
    expect((await store.read.lease(tenant, { name }))?.token).toBe(2n);
    expect(changes).toEqual([[beat, "lost"]]);
    expect(logged).not.toContain("lease.lost"); // the lease was released: no alarm
    await clock.elapse(ttl);
    expect(probe.renewals).toHaveLength(1);
  });

  it("an orphaned renewal that arrives after the successor's grant does not extend the successor's lease", async () => {
    const { clock, store, probe, rivals, lease } = await held();
    let arrive = () => {};
    probe.next.renew.push({ until: new Promise((resolve) => (arrive = resolve)) });
    await clock.elapse(beat);
    await lease.release();
    const successor = await granted(rivals.tryAcquire(name));
    await clock.elapse(5_000);
    arrive();
    await calm();
    expect((await store.read.lease(tenant, { name }))?.remainingMs).toBe(ttl - 5_000);
    successor.assert();
  });

  it("a store that never responds: the release gives up when the lease has expired anyway", async () => {
    const { clock, probe, lease, logged } = await held();
    await clock.elapse(1_000);
    probe.standing.append = "hang";
    const released = lease.release();
    await clock.elapse(trust - 1_001);
    expect(logged).not.toContain("lease.release_failed");
    await clock.elapse(1);
    expect(await released).toBe(false);
    expect(clock.asleep).toBe(0);
  });

  it("an error that a retry cannot fix is not retried", async () => {
    const { probe, lease, stateOf } = await held();
    lease.head = 99;
    expect(await lease.release()).toBe(false);
    expect(probe.appends).toBe(1);
    expect(await stateOf()).toBe("HELD"); // left to expire
  });

  it("of a lost lease does not call the store", async () => {
    const { clock, probe, lease } = await held();
    clock.stall(trust);
    expect(await lease.release()).toBe(false);
    expect(probe.appends).toBe(0);
  });
});

describe("drain", () => {
  const task = () => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    return { work: promise, finish: resolve, fail: reject };
  };

  it("waits for the work while renewing, then releases as drained", async () => {
    const { clock, probe, lease, stateOf, terms } = await held();
    const { work, finish } = task();
    const drained = lease.releaseAfter(work, 10 * ttl);
    await clock.elapse(3 * ttl);
    lease.assert(); // the work may still act
    expect(probe.renewals.length).toBeGreaterThan(8);
    expect(await stateOf()).toBe("HELD");
    finish();
    expect(await drained).toBe(true);
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", "drained"]]);
    await calm();
    expect(clock.asleep).toBe(0); // nothing keeps the process alive
  });

  it("failed work counts as finished", async () => {
    const { lease, terms } = await held();
    const { work, fail } = task();
    const drained = lease.releaseAfter(work, ttl);
    fail(new Error("no"));
    expect(await drained).toBe(true);
    expect((await terms())[0]?.endReason).toBe("drained");
  });

  it("over its bound: the lease is left to expire, not released, and the term history says so", async () => {
    const { clock, probe, rivals, lease, changes, terms } = await held();
    const { work, finish } = task();
    const drained = lease.releaseAfter(work, 15_000);
    await clock.elapse(15_000);
    expect(await drained).toBe(false);
    expect(changes).toEqual([[15_000, "lost"]]);
    finish();
    await calm();
    expect(probe.appends).toBe(0);
    expect(await rivals.acquireOrSteal(name)).toBeUndefined();
    await clock.elapse(beat + ttl - 15_000 - 1); // the last renewal was at one heartbeat
    expect(await rivals.acquireOrSteal(name)).toBeUndefined();
    await clock.elapse(1);
    await granted(rivals.acquireOrSteal(name));
    expect(storyOf(await terms())).toEqual([
      [1n, "a", "start", "expired"],
      [2n, "b", "timeout", undefined],
    ]);
  });

  it("a lease that is lost during the drain is not released, and its loss is reported once", async () => {
    const { clock, rivals, lease, changes, terms } = await held();
    const { work, finish } = task();
    const drained = lease.releaseAfter(work, ttl);
    await rivals.takeover(name, "ann", "test");
    await clock.elapse(beat);
    expect(changes).toEqual([[beat, "lost"]]);
    await clock.elapse(ttl);
    expect(await drained).toBe(false);
    finish();
    await calm();
    expect(changes).toHaveLength(1);
    expect((await terms()).at(-1)?.endReason).toBeUndefined();
  });
});

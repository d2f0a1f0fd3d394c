import { describe, expect, it } from "vitest";
import type { Timings } from "../../src/lease/timings.ts";
import {
  beat,
  calm,
  changesOf,
  codeOf,
  expectLost,
  granted,
  name,
  setStage,
  tenant,
  trust,
  ttl,
  writeAs,
} from "./stage.ts";

async function held(timings: Partial<Timings> = {}) {
  const stage = await setStage();
  const keeper = stage.keeper("a", { timings });
  const lease = await granted(keeper.tryAcquire(name));
  return { ...stage, keeper, rivals: stage.keeper("b"), lease, changes: changesOf(lease, stage.now) };
}

describe("held, unknown, lost", () => {
  it("is renewed every heartbeat, and the deadline moves with it", async () => {
    const { clock, probe, lease, changes } = await held();
    for (let beats = 1; beats <= 10; beats++) {
      await clock.elapse(beat);
      expect(probe.renewals).toHaveLength(beats);
      expect(lease.remainingMs()).toBe(trust);
    }
    expect(changes).toEqual([]);
    expect(lease.counters()).toMatchObject({ renewals: 10, longestGapMs: beat });
  });

  it("one failed renewal, then recovery: unknown, held, never lost", async () => {
    const { clock, probe, lease, changes } = await held();
    probe.next.renew.push("before");
    await clock.elapse(beat);
    expect(lease.belief).toBe("unknown");
    lease.assert(); // the holder may act until the deadline
    await clock.elapse(ttl * 3);
    expect(changes).toEqual([
      [beat, "unknown"],
      [beat + 250, "held"],
    ]);
    expect(lease.abortSignal.aborted).toBe(false);
  });

  it.each(["before", "busy", "vanished"] as const)(
    "renewals that fail (%s) until the deadline: lost exactly there",
    async (fate) => {
      const trustMs = 24_900; // between two attempts
      const { clock, probe, lease, changes } = await held({ trustMs });
      probe.standing.renew = fate;
      await clock.elapse(trustMs - 1);
      lease.assert();
      expect(lease.remainingMs()).toBe(1);
      await clock.elapse(1);
      expect(changes).toEqual([
        [beat, "unknown"],
        [trustMs, "lost"],
      ]);
      expect(lease.abortSignal.aborted).toBe(true);
      expectLost(lease);
      const tries = probe.renewals.length;
      expect(tries).toBeGreaterThan(10); // the keeper kept trying
      await clock.elapse(ttl);
      expect(probe.renewals).toHaveLength(tries); // and has stopped trying
    },
  );

  it("[INV-11] the deadline counts from sending the last successful renewal, not from its response", async () => {
    const { clock, probe, lease, changes } = await held();
    probe.next.renew.push({ lateMs: 4_000 });
    await clock.elapse(beat + 4_000);
    expect(lease.remainingMs()).toBe(trust - 4_000);
    probe.standing.renew = "hang";
    await clock.elapse(ttl);
    expect(changes.at(-1)).toEqual([beat + trust, "lost"]);
  });

  it("a slow result does not delay the next heartbeat", async () => {
    const { clock, probe } = await held();
    probe.next.renew.push({ lateMs: 4_000 });
    await clock.elapse(2 * beat);
    expect(probe.renewals).toHaveLength(2);
  });

  it("committed renewals whose results are lost: unknown, then held", async () => {
    const { clock, store, probe, lease, changes } = await held();
    probe.next.renew.push("after", "after");
    await clock.elapse(beat + 500);
    expect(changes.map(([, to]) => to)).toEqual(["unknown", "held"]);
    const row = await store.read.lease(tenant, { name });
    expect([row?.renewals, lease.counters().renewals]).toEqual([3, 1]);
  });
});

describe("a renewal that hangs", () => {
  it("on an exhausted pool: each attempt is limited to the remaining time, and the lease is lost at its deadline", async () => {
    const { clock, probe, lease, changes } = await held();
    probe.standing.renew = "hang";
    await clock.elapse(2 * beat + 300);
    expect(probe.renewals).toHaveLength(2); // the first had one heartbeat; the second has the remaining time
    const renewal = lease.renew();
    await clock.elapse(trust - 2 * beat - 300);
    expect(await renewal).toBe("lost");
    expect(changes).toEqual([
      [2 * beat, "unknown"],
      [trust, "lost"],
    ]);
  });

  it("a result after the call timed out still counts, from the moment of its request", async () => {
    const { clock, probe, changes } = await held();
    probe.next.renew.push({ lateMs: 12_000 });
    probe.standing.renew = "hang";
    await clock.elapse(ttl * 2);
    expect(changes).toEqual([
      [2 * beat, "unknown"],
      [beat + 12_000, "held"],
      [expect.closeTo(beat + 12_000 + beat, -1), "unknown"],
      [beat + trust, "lost"],
    ]);
  });

  it("a result after the loss changes nothing", async () => {
    const { clock, store, probe, keeper, lease, changes } = await held();
    probe.next.renew.push({ lateMs: ttl });
    probe.standing.renew = "hang";
    await clock.elapse(trust);
    const before = [...changes];
    expect(before.at(-1)).toEqual([trust, "lost"]);
    await clock.elapse(ttl * 2);
    expect((await store.read.lease(tenant, { name }))?.renewals).toBe(1); // the store did renew it
    expect(changes).toEqual(before);
    expectLost(lease);
    expect(keeper.leases).toEqual([]);
  });

  it("results that arrive out of order do not move the deadline back", async () => {
    const { clock, probe, lease } = await held();
    probe.next.renew.push({ lateMs: 5_000 });
    const slow = lease.renew(); // sent at 0
    await clock.elapse(1_000);
    expect(await lease.renew()).toBe("held"); // sent at 1 000, result at once
    await clock.elapse(4_000);
    expect(await slow).toBe("held");
    expect(lease.remainingMs()).toBe(trust - 4_000);
    expect(lease.counters()).toMatchObject({ renewals: 2, longestGapMs: 1_000 });
  });
});

describe("clocks", () => {
  it("a synchronous stall past the deadline: assert throws at once, although nothing has aborted yet", async () => {
    const { clock, store, lease } = await held();
    clock.stall(trust - 1);
    lease.assert();
    clock.stall(1);
    expect(lease.abortSignal.aborted).toBe(false);
    expect(() => lease.assert()).toThrow("no renewal for 25000 ms; it was trusted for 25000 ms");
    expect(lease.abortSignal.aborted).toBe(true);
    expect(lease.abortSignal.reason).toMatchObject({ code: "TAPE_LEASE_LOST" });
    expect((await store.read.lease(tenant, { name }))?.state).toBe("HELD"); // the holder stopped well before the store reports expiry
  });

  it("ten seconds of stall with a short lease", async () => {
    const stage = await setStage();
    const lease = await granted(stage.keeper("a", { timings: { ttlMs: 3_000 } }).tryAcquire(name));
    stage.clock.stall(10_000);
    expect(lease.abortSignal.aborted).toBe(false);
    expectLost(lease);
  });

  it("a result that waited behind the stall does not restore the lease", async () => {
    const { clock, probe, lease } = await held();
    probe.next.renew.push({ lateMs: 100 });
    await clock.elapse(beat);
    clock.stall(trust - beat); // the renewal was sent and executed before the deadline, its result arrives after it
    await clock.elapse(0);
    expectLost(lease);
  });

  it("[INV-11] suspended: wall time passed, monotonic time did not", async () => {
    const { clock, probe, lease } = await held();
    clock.suspend(trust - 1);
    lease.assert();
    clock.suspend(1);
    expect(lease.abortSignal.aborted).toBe(false);
    expectLost(lease);
    await clock.elapse(ttl);
    expect(probe.renewals).toEqual([]);
  });

  it("suspended, without a check: noticed at the next heartbeat, without a call to the store", async () => {
    const { clock, probe, changes } = await held();
    clock.suspend(ttl);
    await clock.elapse(beat);
    expect(changes).toEqual([[beat, "lost"]]);
    expect(probe.renewals).toEqual([]);
  });

  it("[INV-11] the wall clock is set back by an hour: nothing changes, and nothing lasts longer", async () => {
    const { clock, probe, lease, changes } = await held();
    clock.stepWall(-3_600_000);
    expect(lease.remainingMs()).toBe(trust);
    await clock.elapse(5 * beat);
    expect(changes).toEqual([]);
    probe.standing.renew = "hang";
    clock.stepWall(-3_600_000);
    await clock.elapse(trust);
    expect(changes.at(-1)).toEqual([5 * beat + trust, "lost"]);
  });

  it("the wall clock is set forward by an hour: counted as elapsed time, which is safe", async () => {
    const { clock, store, lease, changes } = await held();
    clock.stepWall(3_600_000);
    expectLost(lease);
    clock.stepWall(-3_600_000); // a lost lease stays lost
    expectLost(lease);
    expect(changes).toEqual([[0, "lost"]]);
    const row = await store.read.lease(tenant, { name });
    expect([row?.state, row?.remainingMs]).toEqual(["HELD", ttl]); // the store uses another clock for leases
  });

  it("the wall clock is set forward and back: the lease stays lost, even if its user never checked in between", async () => {
    const { clock, lease } = await held();
    clock.stepWall(3_600_000);
    await clock.elapse(beat); // the heartbeat checks
    clock.stepWall(-3_600_000);
    expectLost(lease);
  });
});

describe("a paused holder", () => {
  it("past its deadline but before expiry: stops, and no other process can act yet", async () => {
    const { clock, store, lease, rivals } = await held();
    clock.stall((trust + ttl) / 2);
    expectLost(lease);
    expect(await rivals.acquireOrSteal(name)).toBeUndefined();
    expect((await store.read.lease(tenant, { name }))?.state).toBe("HELD");
    await clock.elapse((ttl - trust) / 2);
    expect((await granted(rivals.stealExpired(name))).token).toBe(lease.token + 1n);
  });

  it("past its TTL with a rival: everything it tries is refused, and the term history says why", async () => {
    const { clock, store, lease, changes, probe, rivals, terms } = await held();
    clock.stall(ttl);
    const rival = await granted(rivals.acquireOrSteal(name));
    expect(lease.abortSignal.aborted).toBe(false); // the event loop has not run its timer since
    expect(await codeOf(writeAs(store, lease))).toBe("TAPE_FENCED");
    const [verdict] = await store.claim.renew([{ fence: lease.fence, progress: 1 }]);
    expect(verdict).toMatchObject({ ok: false, error: { code: "TAPE_FENCED" } });
    expect(await lease.release()).toBe(false);
    await clock.elapse(beat);
    expect(changes).toEqual([[ttl, "lost"]]);
    rival.assert();
    const story = (await terms()).map(({ token, endReason, startReason }) => [token, startReason, endReason]);
    expect(story).toEqual([
      [1n, "start", "expired"],
      [2n, "timeout", undefined],
    ]);
    expect(probe.renewals.flat().map(({ fence }) => fence.token)).toEqual([2n]); // the stale holder did not even try
  });

  it("past its TTL without a rival: still lost; it leads again under a new token", async () => {
    const { clock, keeper, store, lease } = await held();
    clock.stall(ttl * 2);
    await clock.elapse(0);
    expectLost(lease);
    await calm();
    const again = await granted(keeper.acquireOrSteal(name));
    expect(again.token).toBe(lease.token + 1n);
    again.assert();
    expectLost(lease);
    expect(await codeOf(writeAs(store, lease))).toBe("TAPE_FENCED");
  });
});

import { describe, expect, it } from "vitest";
import { beat, calm, codeOf, expectLost, granted, name, setStage, storyOf, tenant, ttl } from "./stage.ts";

const hour = 3_600_000;

describe("a standby", () => {
  it("of a free lease leads at once", async () => {
    const { keeper, probe } = await setStage();
    (await granted(keeper().acquire(name))).assert();
    expect(probe.acquires).toHaveLength(1);
  });

  it("sleeps exactly as long as the dead holder's lease lasts: two attempts, not one more", async () => {
    const { clock, keeper, probe, now } = await setStage();
    const dead = keeper("dead");
    await granted(dead.tryAcquire(name));
    await clock.elapse(4_000);
    dead.close();
    const attemptsBefore = probe.acquires.length;
    const waiting = keeper("b").acquire(name, { pollMs: hour });
    await clock.elapse(ttl - 4_000 - 1);
    expect(probe.acquires).toHaveLength(attemptsBefore + 1);
    await clock.elapse(101); // up to 100 ms of jitter
    const lease = await granted(waiting);
    expect(probe.acquires).toHaveLength(attemptsBefore + 2);
    expect(now()).toBe(ttl + 100);
    expect(lease.term.reason).toBe("timeout");
    expect(clock.asleep).toBe(0);
  });

  it("of a live holder tries about once per TTL", async () => {
    const { clock, keeper, probe } = await setStage();
    await granted(keeper("a").tryAcquire(name));
    void keeper("b").acquire(name, { pollMs: hour });
    await clock.elapse(20 * ttl);
    expect(probe.acquires.length).toBeLessThan(35); // each attempt finds the lease renewed, and sleeps for its remaining time
    expect(probe.acquires.length).toBeGreaterThan(15);
  });

  it("that came too late to take over pauses by `takeover`, even if it polls more often", async () => {
    const { clock, keeper, probe } = await setStage();
    const dead = keeper("dead");
    await granted(dead.tryAcquire(name));
    dead.close();
    probe.unsubscribe = true;
    void keeper("b").acquire(name, { pollMs: 200, takeover: { baseMs: 2_000, capMs: 8_000 } });
    await clock.elapse(ttl - 100);
    await granted(keeper("winner").takeover(name, "ann", "the holder is dead"));
    const attempts = () => probe.acquires.filter(({ claimant }) => claimant.label === "b").length;
    const before = attempts();
    expect(before).toBeGreaterThan(100);
    await clock.elapse(200); // it comes too late
    expect(attempts()).toBe(before + 1);
    await clock.elapse(800); // the first pause is 1 s to 2 s
    expect(attempts()).toBe(before + 1);
    await clock.elapse(1_200);
    expect(attempts()).toBeGreaterThan(before + 1);
  });

  it("is woken by a release, at once", async () => {
    const { clock, keeper, probe, now } = await setStage();
    const holder = await granted(keeper("a").tryAcquire(name));
    const waiting = keeper("b").acquire(name, { pollMs: hour });
    await clock.elapse(5_000);
    const attemptsBefore = probe.acquires.length;
    await holder.release();
    await calm();
    const successor = await granted(waiting);
    expect([now(), successor.token, successor.term.reason]).toEqual([5_000, 3n, "release"]);
    expect(probe.acquires).toHaveLength(attemptsBefore + 1);
  });

  it("does not miss a release that happens during its attempt", async () => {
    const { clock, keeper, probe, now } = await setStage();
    const holder = await granted(keeper("a").tryAcquire(name));
    probe.next.acquire.push({ lateMs: 1_000 }); // the refusal is in flight when the lease becomes free
    const waiting = keeper("b").acquire(name, { pollMs: hour });
    await calm();
    expect(await holder.release()).toBe(true);
    await clock.elapse(1_000);
    (await granted(waiting)).assert();
    expect(now()).toBe(1_000);
  });

  it("is not woken by events of other leases", async () => {
    const { clock, keeper, probe } = await setStage();
    const a = keeper("a");
    await granted(a.tryAcquire(name));
    const other = await granted(a.tryAcquire("other"));
    void keeper("b").acquire(name, { pollMs: hour });
    await calm();
    const attemptsBefore = probe.acquires.length;
    await other.release();
    await clock.elapse(1_000);
    expect(probe.acquires).toHaveLength(attemptsBefore);
  });

  it("finds a release whose notification was lost by polling every pollMs", async () => {
    const { clock, keeper, probe, now } = await setStage();
    probe.unsubscribe = true;
    const holder = await granted(keeper("a").tryAcquire(name));
    const waiting = keeper("b").acquire(name, { pollMs: 7_000 });
    await clock.elapse(1_000);
    await holder.release();
    await clock.elapse(5_999);
    expect((await granted(keeper("poll").acquireOrSteal("other"))).token).toBe(1n);
    expect(probe.acquires.filter(({ claimant }) => claimant.label === "b")).toHaveLength(1);
    await clock.elapse(1);
    (await granted(waiting)).assert();
    expect(now()).toBe(7_000);
  });

  it("polls every five seconds by default", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.unsubscribe = true;
    const holder = await granted(keeper("a").tryAcquire(name));
    const waiting = keeper("b").acquire(name);
    await calm();
    await holder.release();
    await clock.elapse(5_000);
    (await granted(waiting)).assert();
  });

  it("waits while an operator has paused the lease, and leads when it is resumed", async () => {
    const { clock, keeper, store } = await setStage();
    await store.claim.pause(tenant, name, true, "ann", "mails");
    const waiting = keeper("b").acquire(name, { pollMs: hour });
    await clock.elapse(60_000);
    await store.claim.pause(tenant, name, false, "ann", "fixed");
    await calm();
    (await granted(waiting)).assert();
  });

  it("throws an error that waiting cannot fix", async () => {
    const { keeper } = await setStage();
    expect(await codeOf(keeper().acquire(""))).toBe("TAPE_BAD_INPUT");
    expect(await codeOf(keeper().acquire(name, { maxStallMs: -1 }))).toBe("TAPE_BAD_TIMING");
    expect(await codeOf(keeper().acquire(name, { timings: { ttlMs: Number.NaN } }))).toBe("TAPE_BAD_TIMING");
  });
});

describe("a standby that is stopped", () => {
  it("before its first attempt: does not call the store", async () => {
    const { keeper, probe } = await setStage();
    expect(await keeper().acquire(name, { signal: AbortSignal.abort() })).toBeUndefined();
    expect(probe.acquires).toEqual([]);
  });

  it("while it sleeps: ends at once", async () => {
    const { clock, keeper, probe } = await setStage();
    await granted(keeper("a").tryAcquire(name));
    const stop = new AbortController();
    const waiting = keeper("b").acquire(name, { signal: stop.signal });
    await clock.elapse(1_000);
    const attemptsBefore = probe.acquires.length;
    stop.abort();
    expect(await waiting).toBeUndefined();
    await clock.elapse(hour);
    expect(probe.acquires).toHaveLength(attemptsBefore);
    expect(clock.asleep).toBe(0);
  });

  it("while the store is granting: the lease is released before the call returns", async () => {
    const { clock, keeper, probe, store, terms } = await setStage();
    const stop = new AbortController();
    const b = keeper("b");
    probe.next.acquire.push({ lateMs: 1_000 });
    const waiting = b.acquire(name, { signal: stop.signal });
    await clock.elapse(500);
    stop.abort();
    await clock.elapse(500);
    expect(await waiting).toBeUndefined();
    expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
    expect(storyOf(await terms())).toEqual([[1n, "b", "start", "released"]]);
    expect(b.leases).toEqual([]);
  });

  it("because its keeper closes: ends at once, and leaves nothing behind", async () => {
    const { clock, keeper, probe, store, terms } = await setStage();
    const holder = await granted(keeper("a").tryAcquire(name));
    const sleeping = keeper("b");
    const slept = sleeping.acquire(name);
    await calm();
    sleeping.close();
    expect(await slept).toBeUndefined();
    await holder.release();
    const asking = keeper("c");
    probe.next.acquire.push({ lateMs: 1_000 });
    const attempt = asking.acquire(name);
    await calm();
    asking.close();
    await clock.elapse(1_000);
    expect(await attempt).toBeUndefined();
    expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
    expect(storyOf(await terms()).at(-1)).toEqual([3n, "c", "release", "released"]);
  });
});

describe("many standbys", () => {
  it("200 standbys and one release: one leads, the others go back to sleep", async () => {
    const { clock, keeper, probe } = await setStage();
    const holder = await granted(keeper("a").tryAcquire(name));
    const standbys = Array.from({ length: 200 }, (_, k) => keeper(`standby-${k}`));
    const leading: string[] = [];
    for (const standby of standbys) {
      void standby.acquire(name, { pollMs: hour }).then((lease) => lease && leading.push(standby.identity.label));
    }
    await clock.elapse(1_000);
    expect(probe.acquires).toHaveLength(1 + 200);
    await holder.release();
    await calm();
    expect(leading).toHaveLength(1);
    expect(probe.acquires).toHaveLength(1 + 200 + 200);
    await clock.elapse(2 * beat);
    expect(leading).toHaveLength(1);
    expect(probe.acquires).toHaveLength(1 + 200 + 200);
    expectLost(holder);
  });

  it("200 standbys and a dead holder: one leads, and no standby tries more than twice", async () => {
    const { clock, keeper, probe } = await setStage();
    const dead = keeper("dead");
    await granted(dead.tryAcquire(name));
    dead.close();
    let leading = 0;
    for (let k = 0; k < 200; k++) {
      void keeper(`standby-${k}`)
        .acquire(name, { pollMs: hour })
        .then((lease) => lease && leading++);
    }
    await clock.elapse(ttl + 100);
    expect(leading).toBe(1);
    expect(probe.acquires).toHaveLength(1 + 200 + 200);
  });

  it("20 standbys after a store outage: one leads", async () => {
    const { clock, keeper, probe, terms } = await setStage();
    const first = await granted(keeper("a").tryAcquire(name));
    const leading: unknown[] = [];
    for (let k = 0; k < 20; k++) {
      void keeper(`standby-${k}`)
        .acquire(name)
        .then((lease) => lease && leading.push(lease));
    }
    await clock.elapse(1_000);
    probe.standing.acquire = "before";
    probe.standing.renew = "before";
    await clock.elapse(2 * ttl);
    expectLost(first);
    const attempts = probe.acquires.length;
    expect(attempts).toBeLessThan(20 * 60); // in a minute; no standby hammers an unavailable store
    delete probe.standing.acquire;
    delete probe.standing.renew;
    await clock.elapse(10_000); // the maximum backoff
    expect(leading).toHaveLength(1);
    expect((await terms()).map(({ endReason }) => endReason)).toEqual(["expired", undefined]);
  });
});

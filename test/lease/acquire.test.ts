import { describe, expect, it } from "vitest";
import type { LeaseKeeper } from "../../src/lease/keeper.ts";
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
} from "./stage.ts";

type Method = "tryAcquire" | "stealExpired" | "acquireOrSteal";
const ask = (keeper: LeaseKeeper, method: Method) => keeper[method](name);

describe("one attempt", () => {
  const states = ["never held", "released", "held", "expired"] as const;
  const taken: Record<Method, readonly string[]> = {
    tryAcquire: ["never held", "released"],
    stealExpired: ["expired"],
    acquireOrSteal: ["never held", "released", "expired"],
  };
  const reasons = { "never held": "start", released: "release", held: "", expired: "timeout" } as const;
  const cases = (Object.keys(taken) as Method[]).flatMap((method) => states.map((state) => [method, state] as const));

  it.each(cases)("%s of a lease that is %s", async (method, state) => {
    const { clock, keeper, terms } = await setStage();
    const other = keeper("other");
    const before = state === "never held" ? undefined : await granted(other.tryAcquire(name));
    if (state === "released") await before?.release();
    if (state === "expired") {
      other.close();
      await clock.elapse(ttl);
    }
    const lease = await ask(keeper("a"), method);
    expect(lease !== undefined).toBe(taken[method].includes(state));
    if (lease === undefined && state === "never held") {
      await expect(terms()).rejects.toThrow("TAPE_LEASE_NOT_FOUND"); // a refused attempt does not create the lease
      return;
    }
    if (lease === undefined) {
      expect((await terms()).at(-1)?.label).toBe("other");
      return;
    }
    lease.assert();
    expect(lease.term.reason).toBe(reasons[state]);
    expect(lease.token > (before?.token ?? 0n)).toBe(true);
  });

  it("twice by one keeper: the second attempt finds the lease held by its own keeper and changes nothing", async () => {
    const { clock, keeper, terms } = await setStage();
    const a = keeper("a");
    const first = await granted(a.tryAcquire(name));
    for (const method of ["tryAcquire", "stealExpired", "acquireOrSteal"] as const) {
      expect(await ask(a, method)).toBeUndefined();
    }
    await clock.elapse(ttl * 2);
    first.assert();
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", undefined]]);
  });

  it("two keepers with one label are two owners", async () => {
    const { keeper } = await setStage();
    const first = await granted(keeper("twin").tryAcquire(name));
    expect(await keeper("twin").acquireOrSteal(name)).toBeUndefined();
    first.assert();
  });

  it("an attempt on a lease that an operator paused is refused as paused", async () => {
    const { keeper, store } = await setStage();
    await store.claim.pause(tenant, name, true, "ann", "too many mails");
    expect(await codeOf(keeper("a").tryAcquire(name))).toBe("TAPE_LEASE_PAUSED");
  });

  it("bad options are refused before the store is called", async () => {
    const { keeper, probe } = await setStage();
    expect(await codeOf(keeper("a").tryAcquire(name, { timings: { heartbeatMs: trust } }))).toBe("TAPE_BAD_TIMING");
    expect(probe.acquires).toEqual([]);
  });
});

describe("lost results", () => {
  it("committed: repeated with the same nonce, one term, and the deadline counts from the first request", async () => {
    const { clock, keeper, probe, now, terms } = await setStage();
    probe.next.acquire.push("after", "after");
    const attempt = keeper("a").tryAcquire(name);
    await clock.elapse(1_000);
    const lease = await granted(attempt);
    expect(lease.token).toBe(1n);
    expect(new Set(probe.acquires.map(({ nonce }) => nonce)).size).toBe(1);
    expect(probe.acquires).toHaveLength(3);
    expect(lease.remainingMs()).toBe(trust - 1_000);
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", undefined]]);
    const changes = changesOf(lease, now);
    probe.standing.renew = "before";
    await clock.elapse(trust);
    expect(changes.at(-1)).toEqual([expect.closeTo(trust, 1), "lost"]); // pauses are fractions of milliseconds
  });

  it("not committed: repeated, and granted once", async () => {
    const { clock, keeper, probe, terms } = await setStage();
    probe.next.acquire.push("vanished");
    const attempt = keeper("a").tryAcquire(name);
    await clock.elapse(1_000);
    expect((await granted(attempt)).token).toBe(1n);
    expect(await terms()).toHaveLength(1);
  });

  it("definitely not committed: the deadline counts from the request that got a result", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.next.acquire.push("before", "before", "before");
    const attempt = keeper("a").tryAcquire(name);
    await clock.elapse(50); // the first pause is 25 to 50 ms, all pauses together are 175 to 350 ms
    await clock.elapse(300);
    const lease = await granted(attempt);
    expect(lease.remainingMs()).toBeGreaterThan(trust - 200);
  });

  it("repeatedly: the single attempt gives up and reports an unknown outcome", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.standing.acquire = "vanished";
    const attempt = codeOf(keeper("a").tryAcquire(name));
    await clock.elapse(ttl);
    expect(await attempt).toBe("TAPE_OUTCOME_UNKNOWN");
    expect(probe.acquires).toHaveLength(4);
  });

  it("repeatedly: a standby continues with the same attempt and does not lock itself out", async () => {
    const { clock, keeper, probe, terms } = await setStage();
    probe.next.acquire.push("after", "after", "after", "after", "before", "after");
    const attempt = keeper("a").acquire(name);
    await clock.elapse(5_000);
    const lease = await granted(attempt);
    lease.assert();
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", undefined]]);
    expect(new Set(probe.acquires.map(({ nonce }) => nonce)).size).toBe(1);
  });

  it("a busy store: the single attempt reports it, a standby waits", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.next.acquire.push("busy", "busy", "busy");
    expect(await codeOf(keeper("a").tryAcquire(name))).toBe("TAPE_STORE_BUSY");
    const attempt = keeper("b").acquire(name);
    await clock.elapse(10_000);
    (await granted(attempt)).assert();
  });
});

describe("a grant that arrives late", () => {
  it("with less than a heartbeat left: the lease is renewed at once, not lost", async () => {
    const { clock, keeper, probe, now } = await setStage();
    probe.next.acquire.push({ lateMs: trust - beat / 2 });
    const attempt = keeper("a").tryAcquire(name);
    await clock.elapse(trust - beat / 2);
    const lease = await granted(attempt);
    const changes = changesOf(lease, now);
    expect(lease.remainingMs()).toBe(beat / 2);
    await clock.elapse(trust);
    lease.assert();
    expect(changes).toEqual([]);
  });

  it("after its own deadline: the lease is released, and the term history says that no caller ever received it", async () => {
    const { clock, keeper, probe, store, terms } = await setStage();
    probe.next.acquire.push({ lateMs: trust });
    const attempt = codeOf(keeper("a").tryAcquire(name));
    await clock.elapse(trust);
    expect(await attempt).toBe("TAPE_STORE_BUSY");
    expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", "never_confirmed"]]);
  });

  it("after its own deadline: a standby tries again", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.next.acquire.push({ lateMs: trust });
    const attempt = keeper("a").acquire(name);
    await clock.elapse(trust + 2_000);
    const lease = await granted(attempt);
    lease.assert();
    expect(lease.token).toBe(3n); // granted, released, granted
  });
});

describe("takeover by an operator", () => {
  it("fences the holder at once; the holder learns of it at its next renewal; the term history names operator and reason", async () => {
    const { clock, keeper, store, now, terms } = await setStage();
    const former = await granted(keeper("a").tryAcquire(name));
    const changes = changesOf(former, now);
    await clock.elapse(1_000);
    const operators = await keeper("console").takeover(name, "ann", "a is in the wrong zone");
    operators.assert();
    const { head: after, fence } = former;
    const stale = store.fenced.append(fence, {
      after,
      records: [{ kind: "term.ended", data: { reason: "released", notesTaken: 0 } }],
    });
    expect(await codeOf(stale)).toBe("TAPE_FENCED");
    await clock.elapse(beat - 1_000);
    expect(changes).toEqual([[beat, "lost"]]);
    expect(() => former.assert()).toThrow("held by console");
    expect(storyOf(await terms())).toEqual([
      [1n, "a", "start", "manual"],
      [2n, "console", "manual", undefined],
    ]);
    expect((await terms()).at(-1)).toMatchObject({ by: "ann", auditReason: "a is in the wrong zone" });
  });

  it("needs a name and a reason, and is refused for a paused lease", async () => {
    const { keeper, store } = await setStage();
    const former = await granted(keeper("a").tryAcquire(name));
    const console = keeper("console");
    expect(await codeOf(console.takeover(name, "", "why"))).toBe("TAPE_BAD_INPUT");
    expect(await codeOf(console.takeover(name, "ann", ""))).toBe("TAPE_BAD_INPUT");
    expect(await former.renew()).toBe("held");
    await store.claim.pause(tenant, name, true, "bob", "stop");
    expect(await codeOf(console.takeover(name, "ann", "now"))).toBe("TAPE_LEASE_PAUSED");
    expect(await former.renew()).toBe("lost");
  });

  it("the loss callback of the previous holder is called once, and its standby follows the operator", async () => {
    const { clock, keeper } = await setStage();
    const a = keeper("a");
    const former = await granted(a.tryAcquire(name));
    let calls = 0;
    former.onChange(() => calls++);
    const operators = await keeper("console").takeover(name, "ann", "maintenance");
    const waiting = a.acquire(name);
    await clock.elapse(ttl);
    expect(calls).toBe(1);
    expectLost(former);
    operators.assert();
    await operators.release();
    await calm();
    expect((await granted(waiting)).token).toBe(4n);
  });
});

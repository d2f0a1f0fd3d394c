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

describe("one try", () => {
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
      await expect(terms()).rejects.toThrow("TAPE_LEASE_NOT_FOUND"); // a refused try does not bring it into being
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

  it("twice by one keeper: the second finds it held, by itself, and harms nothing", async () => {
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

  it("a lease that an operator paused says so", async () => {
    const { keeper, store } = await setStage();
    await store.claim.pause(tenant, name, true, "ann", "too many mails");
    expect(await codeOf(keeper("a").tryAcquire(name))).toBe("TAPE_LEASE_PAUSED");
  });

  it("bad options are refused before the store is asked", async () => {
    const { keeper, probe } = await setStage();
    expect(await codeOf(keeper("a").tryAcquire(name, { timings: { heartbeatMs: trust } }))).toBe("TAPE_BAD_TIMING");
    expect(probe.acquires).toEqual([]);
  });
});

describe("answers that get lost", () => {
  it("committed: repeated by its nonce, one term, and the deadline counts from the first sending", async () => {
    const { clock, keeper, probe, now, terms } = await setStage();
    probe.next.acquire.push("after", "after");
    const asked = keeper("a").tryAcquire(name);
    await clock.elapse(1_000);
    const lease = await granted(asked);
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
    const asked = keeper("a").tryAcquire(name);
    await clock.elapse(1_000);
    expect((await granted(asked)).token).toBe(1n);
    expect(await terms()).toHaveLength(1);
  });

  it("surely not committed: the deadline counts from the sending that was answered", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.next.acquire.push("before", "before", "before");
    const asked = keeper("a").tryAcquire(name);
    await clock.elapse(50); // the first pause is 25 to 50 ms, all of them together 175 to 350
    await clock.elapse(300);
    const lease = await granted(asked);
    expect(lease.remainingMs()).toBeGreaterThan(trust - 200);
  });

  it("again and again: the single try gives up and says that it does not know", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.standing.acquire = "vanished";
    const asked = codeOf(keeper("a").tryAcquire(name));
    await clock.elapse(ttl);
    expect(await asked).toBe("TAPE_OUTCOME_UNKNOWN");
    expect(probe.acquires).toHaveLength(4);
  });

  it("again and again: who stands by goes on with the same attempt, and does not lock itself out", async () => {
    const { clock, keeper, probe, terms } = await setStage();
    probe.next.acquire.push("after", "after", "after", "after", "before", "after");
    const asked = keeper("a").acquire(name);
    await clock.elapse(5_000);
    const lease = await granted(asked);
    lease.assert();
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", undefined]]);
    expect(new Set(probe.acquires.map(({ nonce }) => nonce)).size).toBe(1);
  });

  it("a store that is busy: the single try says so, who stands by waits", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.next.acquire.push("busy", "busy", "busy");
    expect(await codeOf(keeper("a").tryAcquire(name))).toBe("TAPE_STORE_BUSY");
    const asked = keeper("b").acquire(name);
    await clock.elapse(10_000);
    (await granted(asked)).assert();
  });
});

describe("a grant that comes late", () => {
  it("with less than a heartbeat left: it is renewed at once, not lost", async () => {
    const { clock, keeper, probe, now } = await setStage();
    probe.next.acquire.push({ lateMs: trust - beat / 2 });
    const asked = keeper("a").tryAcquire(name);
    await clock.elapse(trust - beat / 2);
    const lease = await granted(asked);
    const changes = changesOf(lease, now);
    expect(lease.remainingMs()).toBe(beat / 2);
    await clock.elapse(trust);
    lease.assert();
    expect(changes).toEqual([]);
  });

  it("after its own deadline: it is given back, and the ledger says that nobody ever knew of it", async () => {
    const { clock, keeper, probe, store, terms } = await setStage();
    probe.next.acquire.push({ lateMs: trust });
    const asked = codeOf(keeper("a").tryAcquire(name));
    await clock.elapse(trust);
    expect(await asked).toBe("TAPE_STORE_BUSY");
    expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
    expect(storyOf(await terms())).toEqual([[1n, "a", "start", "never_confirmed"]]);
  });

  it("after its own deadline: who stands by tries again", async () => {
    const { clock, keeper, probe } = await setStage();
    probe.next.acquire.push({ lateMs: trust });
    const asked = keeper("a").acquire(name);
    await clock.elapse(trust + 2_000);
    const lease = await granted(asked);
    lease.assert();
    expect(lease.token).toBe(3n); // granted, given back, granted
  });
});

describe("takeover by an operator", () => {
  it("fences the holder at once; it hears of it at its next renewal; the ledger names who and why", async () => {
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

  it("needs a name and a reason, and cannot have a paused lease", async () => {
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

  it("the callback of the former holder is called once, and its standby comes after the operator", async () => {
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

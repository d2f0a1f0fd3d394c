import { describe, expect, it } from "vitest";
import { TapeError } from "../../src/model/errors.ts";
import { beat, calm, changesOf, expectLost, granted, name, setStage, storyOf, tenant, trust, ttl } from "./stage.ts";

describe("all leases of a process in one call", () => {
  it("500 leases renew together; the loss of one is reported for that lease alone", async () => {
    const { clock, probe, keeper, store } = await setStage();
    const a = keeper("a");
    const leases = await Promise.all(Array.from({ length: 500 }, (_, k) => granted(a.tryAcquire(`lease-${k}`))));
    const changed: string[] = [];
    for (const lease of leases) lease.onChange(({ to }) => changed.push(`${lease.name} ${to}`));
    await clock.elapse(beat);
    expect(probe.renewals.map((call) => call.length)).toEqual([500]);
    await keeper("console").takeover("lease-217", "ann", "test");
    await clock.elapse(beat);
    expect(probe.renewals[1]).toHaveLength(500);
    expect(changed).toEqual(["lease-217 lost"]);
    expect(a.leases).toHaveLength(499);
    await clock.elapse(beat);
    const own = probe.renewals.filter((call) => call.length > 1);
    expect(own.map((call) => call.length)).toEqual([500, 500, 499]);
    expect(new Set(leases.map((lease) => lease.belief))).toEqual(new Set(["held", "lost"]));
    expect((await store.read.lease(tenant, { name: "lease-499" }))?.renewals).toBe(3);
  });

  it("leases that were acquired at different times converge on shared calls", async () => {
    const { clock, probe, keeper } = await setStage();
    const a = keeper("a");
    for (let k = 0; k < 5; k++) {
      await granted(a.tryAcquire(`lease-${k}`));
      await clock.elapse(beat / 5);
    }
    await clock.elapse(5 * beat);
    const before = probe.renewals.length;
    await clock.elapse(10 * beat);
    // A call includes every lease due within a quarter of a heartbeat: five leases spread over one heartbeat form two groups.
    expect(probe.renewals.length - before).toBeLessThanOrEqual(20);
    expect(probe.renewals.slice(before).flat()).toHaveLength(50);
  });

  it("an item result that says nothing about the lease makes that lease alone unknown", async () => {
    const { clock, probe, keeper } = await setStage();
    const a = keeper("a");
    const locked = await granted(a.tryAcquire("locked"));
    const other = await granted(a.tryAcquire("other"));
    const renew = probe.claim.renew;
    const busy = { ok: false, error: new TapeError("TAPE_STORE_BUSY", "its row is locked") } as const;
    probe.claim.renew = async (renewals) => {
      const verdicts = await renew(renewals);
      return renewals.map(({ fence }, k) => (fence.journal === locked.fence.journal ? busy : verdicts[k]!));
    };
    await clock.elapse(beat);
    expect([locked.belief, other.belief]).toEqual(["unknown", "held"]);
    probe.claim.renew = renew;
    await clock.elapse(1_000);
    expect([locked.belief, other.belief]).toEqual(["held", "held"]);
    // A store that returns too few item results harms only the leases it left out.
    probe.claim.renew = async (renewals) => (await renew(renewals)).slice(0, 1);
    await clock.elapse(beat - 1_000);
    expect([locked.belief, other.belief].sort()).toEqual(["held", "unknown"]);
  });

  it("a progress note that no store accepts fails no renewal, not even that of its own lease", async () => {
    const { clock, keeper, store } = await setStage();
    const a = keeper("a");
    const odd = await granted(a.tryAcquire("odd"));
    const other = await granted(a.tryAcquire("other"));
    for (const note of ["x".repeat(5_000), "a\0b", "half a pair \ud83d", `${"x".repeat(511)}😀`, ""]) {
      odd.progress(note);
      await clock.elapse(beat);
      expect([odd.belief, other.belief]).toEqual(["held", "held"]);
    }
    odd.progress("half a pair \ud83d");
    await clock.elapse(beat);
    const row = await store.read.lease(tenant, { name: "odd" });
    expect([row?.progress, row?.progressNote]).toEqual([6, "half a pair \ufffd"]);
    expect(await odd.release()).toBe(true);
  });
});

it("leases that were acquired at different times soon renew in one call", async () => {
  const { clock, probe, keeper } = await setStage();
  const a = keeper("a");
  for (const name of ["first", "second", "third"]) {
    await granted(a.tryAcquire(name));
    await clock.elapse(beat / 3 + 10);
  }
  await clock.elapse(3 * beat);
  const calls = probe.renewals.length;
  await clock.elapse(4 * beat);
  expect(probe.renewals.slice(calls).map(({ length }) => length)).toEqual([3, 3, 3, 3]);
});

describe("mixed TTLs of one keeper", () => {
  it("each lease keeps its own timings", async () => {
    const { clock, probe, keeper, now } = await setStage();
    const a = keeper("a");
    const long = await granted(a.tryAcquire("long"));
    const short = await granted(a.tryAcquire("short", { timings: { ttlMs: 600 } }));
    expect(short.timings).toEqual({ ttlMs: 600, heartbeatMs: 200, trustMs: 500 });
    expect(long.timings).toEqual({ ttlMs: ttl, heartbeatMs: beat, trustMs: trust });
    const lost: [string, number][] = [];
    for (const lease of [long, short]) lease.onChange(({ to }) => to === "lost" && lost.push([lease.name, now()]));
    await clock.elapse(3 * beat);
    const of = (journal: number) => probe.renewals.flat().filter(({ fence }) => fence.journal === journal).length;
    expect(of(short.fence.journal)).toBe((3 * beat) / 200);
    expect(of(long.fence.journal)).toBeLessThanOrEqual(4);
    expect(lost).toEqual([]);
    probe.standing.renew = "before";
    await clock.elapse(ttl);
    expect(lost.map(([who]) => who)).toEqual(["short", "long"]);
    expect(lost[0]![1]).toBeCloseTo(3 * beat + 500, 0);
  });

  it("a call that hangs for the long lease does not keep the short lease from renewing", async () => {
    const { clock, probe, keeper } = await setStage();
    const a = keeper("a");
    const long = await granted(a.tryAcquire("long"));
    await clock.elapse(5_000);
    const short = await granted(a.tryAcquire("short", { timings: { ttlMs: 3_000 } }));
    await clock.elapse(beat - 5_000 - 1_500); // the next call includes both leases
    probe.next.renew.push("hang");
    const calls = probe.renewals.length;
    await clock.elapse(beat);
    expect(probe.renewals.length - calls).toBeGreaterThan(8);
    expect(short.belief).toBe("held");
    expect(long.belief).not.toBe("lost");
  });

  it("a loss is reported at its deadline, whatever wakes the keeper in between", async () => {
    const { clock, probe, keeper, now } = await setStage();
    const a = keeper("a");
    const one = await granted(a.tryAcquire("one", { timings: { ttlMs: 1_200, heartbeatMs: 300, trustMs: 1_035 } }));
    await granted(a.tryAcquire("eager", { timings: { heartbeatMs: 30 } })); // tries every 10 ms
    const changes = changesOf(one, now);
    probe.standing.renew = "before";
    await clock.elapse(1_100);
    const [at, to] = changes.at(-1)!;
    expect(to).toBe("lost");
    expect(Math.abs(at - 1_035)).toBeLessThanOrEqual(1); // timers have no finer resolution
  });

  it("a lease that is about to expire does not shorten the call timeout of the others", async () => {
    const { clock, probe, keeper, now } = await setStage();
    const a = keeper("a");
    const long = await granted(a.tryAcquire("long"));
    await clock.elapse(beat - 1_000);
    await granted(a.tryAcquire("short", { timings: { ttlMs: 3_000 } }));
    const changes = changesOf(long, now);
    probe.standing.renew = { lateMs: 3_000 }; // too late for the short one, early enough for the long one
    await clock.elapse(3 * beat);
    expect(changes).toEqual([]);
  });
});

describe("progress", () => {
  it("a wedged worker that still heartbeats loses its lease as stalled, and its standby takes over", async () => {
    const { clock, keeper, now, terms } = await setStage();
    const wedged = await granted(keeper("a").tryAcquire(name, { maxStallMs: 25_000 }));
    const changes = changesOf(wedged, now);
    const waiting = keeper("b").acquire(name);
    await clock.elapse(5_000);
    wedged.progress("opening the file");
    await clock.elapse(25_000);
    expect(changes).toEqual([]); // the progress reached the store at the first heartbeat
    await clock.elapse(10_000);
    expect(changes).toEqual([[40_000, "lost"]]);
    expect(() => wedged.assert()).toThrow("stalled");
    await clock.elapse(ttl);
    const successor = await granted(waiting);
    successor.assert();
    expect(storyOf(await terms())).toEqual([
      [1n, "a", "start", "stalled"],
      [2n, "b", "stalled", undefined],
    ]);
    expect((await terms())[0]).toMatchObject({ progress: 1, progressNote: "opening the file" });
  });

  it("a worker that makes progress keeps its lease", async () => {
    const { clock, keeper, now } = await setStage();
    const lease = await granted(keeper("a").tryAcquire(name, { maxStallMs: 15_000 }));
    const changes = changesOf(lease, now);
    for (let k = 0; k < 20; k++) {
      lease.progress();
      await clock.elapse(beat);
    }
    expect(changes).toEqual([]);
  });
});

describe("renew, called by the holder", () => {
  it("moves the deadline and the next heartbeat", async () => {
    const { clock, probe, keeper } = await setStage();
    const lease = await granted(keeper("a").tryAcquire(name));
    await clock.elapse(6_000);
    expect(await lease.renew()).toBe("held");
    expect(lease.remainingMs()).toBe(trust);
    await clock.elapse(beat - 1);
    expect(probe.renewals).toHaveLength(1);
    await clock.elapse(1);
    expect(probe.renewals).toHaveLength(2);
    expect(clock.asleep).toBe(0);
  });

  it("reports the notes that have arrived", async () => {
    const { clock, keeper, store } = await setStage();
    const spec = { id: "run", workflow: "w", input: null };
    await store.intake.createRuns(tenant, [spec]);
    const a = keeper("a");
    const claimant = { ...a.identity, reactor: "agent", ttlMs: ttl };
    const request = { target: { run: "run" }, claimant, nonce: 7n, expect: "free" } as const;
    const answer = await store.claim.acquire(tenant, request);
    if (!answer.ok) throw answer.error;
    const lease = a.adopt("run", answer.term, { mono: clock.mono(), wall: clock.wall() });
    await store.intake.signal(tenant, "run", { name: "go", value: 1 });
    expect(lease.notes).toBe(0);
    await clock.elapse(beat);
    expect(lease.notes).toBe(1);
  });

  it("of a lost lease does not call the store", async () => {
    const { clock, probe, keeper } = await setStage();
    const a = keeper("a");
    const lease = await granted(a.tryAcquire(name));
    clock.stall(trust);
    const renewal = lease.renew();
    await clock.elapse(1);
    expect(await renewal).toBe("lost");
    await calm();
    expect(probe.renewals).toEqual([]);
    expect(a.leases).toEqual([]);
    expectLost(lease);
  });
});

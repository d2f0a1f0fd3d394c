import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { seededRandom, systemRandom } from "../../src/base/random.ts";
import { readClocks } from "../../src/lease/belief.ts";
import { identify } from "../../src/lease/identity.ts";
import { LeaseKeeper } from "../../src/lease/keeper.ts";
import type { Lease } from "../../src/lease/lease.ts";
import { type Timings, timingsOf } from "../../src/lease/timings.ts";
import { TapeError } from "../../src/model/errors.ts";
import {
  beat,
  calm,
  changesOf,
  codeOf,
  expectLost,
  granted,
  identityOf,
  name,
  Probe,
  setStage,
  storyOf,
  tenant,
  trust,
  ttl,
} from "./stage.ts";

describe("identity", () => {
  it.each([
    [{ TAPE_REPLICA_ID: "replica-7", HOSTNAME: "pod-1" }, "replica-7"],
    [{ TAPE_REPLICA_ID: "", HOSTNAME: "pod-1" }, "pod-1"],
    [{ TAPE_REPLICA_ID: "replica-7", OPENSHELL_REPLICA_ID: "gateway-3", HOSTNAME: "pod-1" }, "replica-7"],
    [{ OPENSHELL_REPLICA_ID: "gateway-3", HOSTNAME: "pod-1" }, "gateway-3"],
    [{ HOSTNAME: "pod-1" }, "pod-1"],
    [{ HOSTNAME: "" }, hostname()],
    [{}, hostname()],
  ])("%o is called %s", (env, label) => {
    const identity = identify(env, systemRandom);
    expect(identity.label).toBe(label);
    expect(identity.owner.startsWith(`${label}/`)).toBe(true);
  });

  it("two starts from the same environment are never the same owner", () => {
    const env = { TAPE_REPLICA_ID: "replica-7" };
    const owners = Array.from({ length: 1_000 }, () => identify(env, systemRandom).owner);
    expect(new Set(owners).size).toBe(1_000);
  });
});

describe("timings", () => {
  it("heartbeat is a third of the TTL, trust five sixths", () => {
    expect(timingsOf({}, 0)).toEqual({ ttlMs: ttl, heartbeatMs: beat, trustMs: trust });
    expect(timingsOf({ ttlMs: 600 }, 0)).toEqual({ ttlMs: 600, heartbeatMs: 200, trustMs: 500 });
  });

  const refused: [Partial<Timings>, number, string][] = [
    [
      { ttlMs: 300, heartbeatMs: 200, trustMs: 200 },
      0,
      "heartbeat 200 ms must be shorter than trust 200 ms: the lease would lapse",
    ],
    [{ ttlMs: 300, heartbeatMs: 260 }, 0, "heartbeat 260 ms must be shorter than trust 250 ms"],
    [
      { ttlMs: 300, trustMs: 300 },
      0,
      "trust 300 ms must be shorter than TTL 300 ms: the holder would act after others",
    ],
    [{ ttlMs: 300, trustMs: 400 }, 0, "trust 400 ms must be shorter than TTL 300 ms"],
    [{ ttlMs: 5_000 }, 5_000, "TTL 5000 ms must be longer than the store's transaction bound 5000 ms: a worker paused"],
    [{ ttlMs: 4_000 }, 5_000, "TTL 4000 ms must be longer than the store's transaction bound 5000 ms"],
    [{ ttlMs: Number.NaN }, 0, "ttlMs must be a positive number"],
    [{ ttlMs: Number.POSITIVE_INFINITY }, 0, "ttlMs must be a positive number"],
    [{ ttlMs: 0 }, 0, "ttlMs must be a positive number"],
    [{ ttlMs: -1 }, 0, "ttlMs must be a positive number"],
    [{ heartbeatMs: Number.NaN }, 0, "heartbeatMs must be a positive number"],
    [{ heartbeatMs: 0 }, 0, "heartbeatMs must be a positive number"],
    [{ trustMs: Number.NaN }, 0, "trustMs must be a positive number"],
  ];

  it.each(refused)("%o over a bound of %d ms is refused: %s", async (timings, bound, reason) => {
    const { store, clock, keeper } = await setStage();
    const make = () => new LeaseKeeper({ store: new Probe(store, clock, bound), identity: identityOf("a"), timings });
    expect(make).toThrow(TapeError);
    expect(make).toThrow(`TAPE_BAD_TIMING: ${reason}`);
    if (bound > 0) return;
    // The same applies to one lease of a keeper whose own timings are valid.
    const attempt = keeper("a", { timings: { ttlMs: 300 } }).tryAcquire(name, { timings });
    await expect(attempt).rejects.toThrow("TAPE_BAD_TIMING");
  });

  it("one lease may have other timings than its keeper; its own TTL implies its own heartbeat and trust", async () => {
    const { keeper, store } = await setStage();
    const a = keeper("a");
    const short = await granted(a.tryAcquire("short", { timings: { ttlMs: 1_000 } }));
    expect(short.timings).toMatchObject({ ttlMs: 1_000, heartbeatMs: 1_000 / 3 });
    expect((await store.read.lease(tenant, { name: "short" }))?.ttlMs).toBe(1_000);
    const eager = await granted(a.tryAcquire("eager", { timings: { heartbeatMs: 500 } }));
    expect(eager.timings).toEqual({ ttlMs: ttl, heartbeatMs: 500, trustMs: trust });
    const odd = await granted(a.tryAcquire("odd", { timings: { ttlMs: 1_000.4, trustMs: 1_000.2 } }));
    const row = await store.read.lease(tenant, { name: "odd" });
    expect(row!.ttlMs).toBeGreaterThan(odd.timings.trustMs); // rounded so that trust stays below the TTL
  });
});

describe("adopt", () => {
  async function termOfRun() {
    const stage = await setStage();
    const a = stage.keeper("a");
    const first = { ...a.identity, reactor: "agent", ttlMs: 6_000, nonce: 7n };
    const sent = readClocks(stage.clock);
    const [created] = await stage.store.intake.createRuns(tenant, [{ id: "run", workflow: "w", input: 1 }], first);
    if (created?.ok !== true || created.term === undefined) throw new Error("not created");
    return { ...stage, a, term: created.term, sent };
  }

  it("renews a term that was granted with a run, by the TTL of the term", async () => {
    const { clock, store, a, term, sent, probe } = await termOfRun();
    const lease = a.adopt("run", term, sent);
    expect(lease.timings).toEqual({ ttlMs: 6_000, heartbeatMs: 2_000, trustMs: 5_000 });
    expect(a.leases).toEqual([lease]);
    await clock.elapse(60_000);
    lease.assert();
    expect(probe.renewals).toHaveLength(30);
    expect((await store.read.lease(tenant, { run: "run" }))?.state).toBe("HELD");
  });

  it("counts the deadline from the moment of the request", async () => {
    const { clock, a, term, sent, now, probe } = await termOfRun();
    await clock.elapse(1_500);
    const lease = a.adopt("run", term, sent);
    expect(lease.remainingMs()).toBe(3_500);
    const changes = changesOf(lease, now);
    probe.standing.renew = "before";
    await clock.elapse(5_000);
    expect(changes).toEqual([
      [2_000, "unknown"],
      [5_000, "lost"],
    ]);
  });

  it("a term that arrives too late is a lost lease, which the keeper does not renew", async () => {
    const { clock, a, term, sent, probe } = await termOfRun();
    clock.stall(5_000);
    const lease = a.adopt("run", term, sent);
    expectLost(lease);
    await clock.elapse(ttl);
    expect([a.leases, probe.renewals]).toEqual([[], []]);
  });

  it("releases a run's term where the run's journal ends", async () => {
    const { store, a, term, sent } = await termOfRun();
    const lease = a.adopt("run", term, sent);
    const step = { kind: "step.done", data: { pos: 0, name: "s", value: 1 } } as const;
    lease.head = (await store.fenced.append(lease.fence, { after: lease.head, records: [step] })).head;
    expect(await lease.release()).toBe(true);
    const terms = await store.read.terms(tenant, { run: "run" });
    expect(storyOf(terms)).toEqual([[1n, "a", "start", "released"]]);
  });

  it("timings that do not fit are refused", async () => {
    const { a, term, sent } = await termOfRun();
    expect(() => a.adopt("run", term, sent, { heartbeatMs: 5_500 })).toThrow("TAPE_BAD_TIMING");
  });
});

describe("close", () => {
  it("loses every lease at once, stops renewing, and lets them expire", async () => {
    const { clock, keeper, probe, store, now, terms } = await setStage();
    const a = keeper("a");
    const lease = await granted(a.tryAcquire(name));
    const changes = changesOf(lease, now);
    await clock.elapse(1_000);
    a.close();
    a.close();
    expectLost(lease);
    expect(changes).toEqual([[1_000, "lost"]]);
    expect(a.leases).toEqual([]);
    await clock.elapse(ttl);
    expect(probe.renewals).toEqual([]);
    expect((await store.read.lease(tenant, { name }))?.state).toBe("EXPIRED");
    await granted(keeper("b").stealExpired(name));
    expect((await terms())[0]?.endReason).toBe("expired");
  });

  it("with a renewal in flight: its result changes nothing", async () => {
    const { clock, keeper, probe } = await setStage();
    const a = keeper("a");
    const lease = await granted(a.tryAcquire(name));
    probe.next.renew.push({ lateMs: 1_000 });
    await clock.elapse(beat);
    a.close();
    await clock.elapse(ttl);
    expectLost(lease);
    expect(probe.renewals).toHaveLength(1);
  });

  it("a closed keeper refuses every call", async () => {
    const { clock, keeper, probe } = await setStage();
    const a = keeper("a");
    a.close();
    expect(await codeOf(a.tryAcquire(name))).toBe("TAPE_STORE_CLOSED");
    expect(await codeOf(a.acquire(name))).toBe("TAPE_STORE_CLOSED");
    expect(await codeOf(a.takeover(name, "ann", "test"))).toBe("TAPE_STORE_CLOSED");
    expect(() => a.adopt(name, {} as Lease["term"], readClocks(clock))).toThrow("TAPE_STORE_CLOSED");
    expect(probe.acquires).toEqual([]);
  });

  it("a lease that is granted while the keeper closes is released", async () => {
    const { clock, keeper, probe, store } = await setStage();
    const a = keeper("a");
    probe.next.acquire.push({ lateMs: 100 });
    const attempt = codeOf(a.tryAcquire(name));
    await calm();
    a.close();
    await clock.elapse(100);
    expect(await attempt).toBe("TAPE_STORE_CLOSED");
    expect((await store.read.lease(tenant, { name }))?.state).toBe("FREE");
  });
});

describe("rolling restart", () => {
  it.each([1, 2, 3])(
    "of five replicas, with faults (seed %d): at any time at most one believes that it leads",
    async (seed) => {
      const { clock, keeper, probe, terms } = await setStage();
      const random = seededRandom(`rolling ${seed}`);
      const leases: Lease[] = [];
      let maxBelievers = 0;
      let moments = 0;
      const countBelievers = () => {
        moments++;
        maxBelievers = Math.max(maxBelievers, leases.filter((lease) => lease.belief !== "lost").length);
      };
      probe.onCall = countBelievers;
      const replicas = Array.from({ length: 5 }, () => start(0));
      function start(incarnation: number) {
        const replica = keeper(`replica-${incarnation}`);
        const stop = new AbortController();
        // Each replica stands by, leads until its lease is lost, and stands by again.
        void (async () => {
          while (!stop.signal.aborted) {
            const lease = await replica.acquire(name, { signal: stop.signal }).catch(() => undefined);
            if (lease === undefined) continue;
            leases.push(lease);
            countBelievers();
            await new Promise((resolve) => lease.abortSignal.addEventListener("abort", resolve));
          }
        })();
        return { replica, stop };
      }
      for (let round = 1; round <= 15; round++) {
        const which = random.int(replicas.length);
        const { replica, stop } = replicas[which]!;
        stop.abort();
        // Some replicas stop gracefully, some crash; some of the calls around it fail.
        if (random.float() < 0.3) probe.next.append.push("after");
        if (random.float() < 0.3) probe.next.acquire.push("after");
        if (random.float() < 0.3) probe.next.renew.push("before", "after");
        if (random.float() < 0.7) for (const lease of replica.leases) void lease.release();
        await clock.elapse(random.int(50));
        countBelievers();
        replica.close();
        replicas[which] = start(round);
        for (let k = 0; k < 40; k++) {
          await clock.elapse(random.int(1_000));
          countBelievers();
        }
      }
      for (const { stop } of replicas) stop.abort();
      expect(maxBelievers).toBe(1);
      expect(moments).toBeGreaterThan(600);
      const tokens = leases.map(({ token }) => token);
      expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => (x < y ? -1 : 1)));
      expect(leases.length).toBeGreaterThan(2);
      expect((await terms()).length).toBeGreaterThanOrEqual(leases.length);
    },
  );
});

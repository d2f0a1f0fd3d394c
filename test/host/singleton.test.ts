import { expect, it } from "vitest";
import type { SingletonContext } from "../../src/host/singleton/term.ts";
import { TapeError } from "../../src/model/errors.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { calm, setStage, statesOf, untilAborted } from "./stage.ts";

const name = "sweeper";

it("one replica leads; the other stands by and leads as soon as the first has drained and released", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const did: string[] = [];
  const body =
    (who: string) =>
    async ({ abortSignal, token, lease }: { abortSignal: AbortSignal; token: bigint; lease: { belief: string } }) => {
      did.push(`${who} begins ${token}`);
      await untilAborted(abortSignal);
      did.push(`${who} aborted, ${lease.belief}`);
      await stage.clock.sleep(2_000); // finishes its work while it still holds its lease
      did.push(`${who} ends, ${lease.belief}`);
    };
  const first = await a.singleton(name, body("a"));
  await calm();
  const second = await b.singleton(name, body("b"));
  await stage.clock.elapse(60_000);
  expect([first.state, second.state]).toEqual(["holder", "standby"]);
  expect(did).toEqual(["a begins 1"]);

  const states = statesOf(first);
  const closing = a.close();
  await stage.clock.elapse(1_999);
  expect([first.state, second.state]).toEqual(["draining", "standby"]);
  await stage.clock.elapse(1);
  await calm();
  expect(second.state).toBe("holder"); // at once, without waiting for a poll
  await closing;
  expect(states).toEqual(["draining", "stopped"]);
  expect(did).toEqual(["a begins 1", "a aborted, held", "a ends, held", "b begins 3"]);
  expect(await stage.story(name)).toEqual([
    [1n, "start", "drained"],
    [3n, "release", undefined],
  ]);
});

it("child loops share one abort signal; the first that fails stops the others before the lease is released", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  const did: string[] = [];
  const signals = new Set<AbortSignal>();
  const singleton = await app.singleton(name, {
    watch: async ({ abortSignal, lease, token }) => {
      signals.add(abortSignal);
      await untilAborted(abortSignal);
      did.push(`watch ${token} stopped while ${lease.belief}: ${abortSignal.reason}`);
    },
    sweep: async ({ abortSignal, sleep, token }) => {
      signals.add(abortSignal);
      await sleep("5s");
      if (token === 1n) throw new Error("the sweep broke");
      await untilAborted(abortSignal);
    },
  });
  const states = statesOf(singleton);
  await stage.clock.elapse(5_000);
  expect(signals.size).toBe(1);
  expect(did).toEqual(["watch 1 stopped while held: Error: the sweep broke"]);
  expect(singleton.state).toBe("resting"); // and other replicas may try meanwhile
  expect(await stage.story(name)).toEqual([[1n, "start", "drained"]]);
  await stage.clock.elapse(1_000);
  expect(states).toEqual(["holder", "draining", "resting", "standby", "holder"]);
  expect(singleton.view()).toMatchObject({ state: "holder", belief: "held", token: 3n, failures: 1 });
});

it("a body that keeps throwing is called after ever longer pauses, up to the maximum", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  const at: number[] = [];
  const start = stage.clock.mono();
  await app.singleton(
    name,
    () => {
      at.push(stage.clock.mono() - start);
      throw new Error("no");
    },
    { backoff: { base: "1s", cap: "8s" } },
  );
  await stage.clock.elapse(60_000);
  const pauses = at.slice(1).map((time, k) => time - at[k]!);
  expect(pauses.length).toBeGreaterThan(6);
  for (const [k, pause] of pauses.entries()) {
    const nominal = Math.min(8_000, 1_000 * 2 ** k);
    expect(pause).toBeGreaterThanOrEqual(nominal / 2);
    expect(pause).toBeLessThanOrEqual(nominal);
  }
});

it("after a failed renewal the lease is unknown, not lost: the body continues until the deadline, then it is stopped", async () => {
  let away = false;
  const stage = await setStage({
    wrap: (store: Store): Store => ({
      ...store,
      claim: {
        ...store.claim,
        renew: (renewals) =>
          away ? Promise.reject(new TapeError("TAPE_STORE_UNREACHABLE", "away")) : store.claim.renew(renewals),
      },
    }),
  });
  const app = await stage.app("a");
  const seen: string[] = [];
  const singleton = await app.singleton(name, async ({ abortSignal, lease, assert }) => {
    lease.onChange(({ to }) => void seen.push(to));
    await untilAborted(abortSignal);
    seen.push("aborted");
    expect(assert).toThrow("TAPE_LEASE_LOST");
  });
  await calm();
  away = true;
  await stage.clock.elapse(24_000);
  expect(seen).toEqual(["unknown"]);
  expect(singleton.view()).toMatchObject({ state: "holder", belief: "unknown" });
  away = false; // back in time: the belief is held again, and the body noticed nothing
  await stage.clock.elapse(900);
  expect(seen).toEqual(["unknown", "held"]);
  away = true;
  await stage.clock.elapse(25_000);
  expect(seen).toEqual(["unknown", "held", "unknown", "lost", "aborted"]);
  expect(stage.lines.find(({ event }) => event === "singleton.lost")?.fields.reason).toContain("no renewal for");
  away = false;
  await stage.clock.elapse(6_000);
  expect(singleton.state).toBe("holder"); // in a new term, once the old term has expired
  expect(await stage.story(name)).toEqual([
    [1n, "start", "expired"],
    [2n, "timeout", undefined],
  ]);
});

it("a wedged singleton that keeps heartbeating loses its lease with reason stalled, to another replica", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  let unwedge = () => {};
  const wedged = await a.singleton(
    name,
    async ({ progress }) => {
      progress("page 1");
      await new Promise<void>((resolve) => {
        unwedge = resolve;
      });
    },
    { maxStall: "45s" },
  );
  await calm();
  const standby = await b.singleton(
    name,
    async ({ abortSignal, progress, sleep }) => {
      for (; !abortSignal.aborted; await sleep("5s")) progress();
    },
    { maxStall: "45s" },
  );
  await stage.clock.elapse(45_000);
  expect(wedged.state).toBe("holder");
  expect((await stage.store.read.lease("default", { name }))?.renewals).toBe(4); // it still heartbeats
  await stage.clock.elapse(20_000);
  expect([wedged.state, standby.state]).toEqual(["draining", "holder"]);
  expect(await stage.story(name)).toEqual([
    [1n, "start", "stalled"],
    [2n, "stalled", undefined],
  ]);
  // The body ignores its abort signal. This replica logs it, and does not stand by before the body has ended.
  await stage.clock.elapse(10_000);
  expect(stage.lines.filter(({ event }) => event === "singleton.drain_timeout")).toMatchObject([{ level: "error" }]);
  expect(wedged.state).toBe("draining");
  unwedge();
  await calm();
  expect(wedged.state).toBe("standby");
  await stage.clock.elapse(600_000);
  expect(standby.view()).toMatchObject({ state: "holder", token: 2n }); // progress keeps the lease
});

it("a declared wait counts as a stall only after its end; a sleep declares its own wait", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  const singleton = await app.singleton(
    name,
    async ({ abortSignal, waitingFor, sleep }) => {
      await sleep("10m");
      waitingFor("the export of the bank", "5m");
      await untilAborted(abortSignal);
    },
    { maxStall: "30s" },
  );
  const states = statesOf(singleton);
  await stage.clock.elapse(14 * 60_000);
  expect(states).toEqual(["holder"]);
  expect((await app.leases.explain(name))?.text).toContain("(the export of the bank)");
  await stage.clock.elapse(2 * 60_000);
  expect(states.slice(0, 3)).toEqual(["holder", "draining", "standby"]);
  expect((await stage.story(name))[0]).toEqual([1n, "start", "stalled"]);
});

it("a body that returns keeps the lease, so that no other replica does the work again in this term", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const did: string[] = [];
  await a.singleton(name, () => void did.push("a"), { maxStall: "30s" });
  await calm();
  await b.singleton(name, () => void did.push("b"));
  await stage.clock.elapse(600_000);
  expect(did).toEqual(["a"]);
  await a.close();
  await calm();
  expect(did).toEqual(["a", "b"]);
});

it("every: the body is called repeatedly in one term", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  const at: [number, bigint][] = [];
  const start = stage.clock.mono();
  await app.singleton(name, ({ token }) => void at.push([stage.clock.mono() - start, token]), {
    every: "60s",
    maxStall: "15s",
  });
  await stage.clock.elapse(180_000);
  expect(at).toEqual([0, 60_000, 120_000, 180_000].map((time) => [time, 1n]));
});

it("pause drains the body before the lease is paused; after resume a replica leads again", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const did: string[] = [];
  const body = async ({ abortSignal, lease }: { abortSignal: AbortSignal; lease: { belief: string } }) => {
    await untilAborted(abortSignal);
    await stage.clock.sleep(1_000);
    did.push(lease.belief);
  };
  const first = await a.singleton(name, body);
  await calm();
  const second = await b.singleton(name, body);
  await calm();
  const pausing = first.pause({ reason: "maintenance", by: "ada" });
  await stage.clock.elapse(1_000);
  await pausing;
  expect(did).toEqual(["held"]); // drained under its own lease
  await stage.clock.elapse(60_000);
  expect([first.state, second.state]).toEqual(["standby", "standby"]);
  expect(await a.leases.explain(name)).toMatchObject({ paused: true, state: "FREE" });
  await second.resume({ reason: "done", by: "ada" });
  await stage.clock.elapse(10);
  expect([first.state, second.state].sort()).toEqual(["holder", "standby"]);
  const terms = await a.leases.history(name);
  expect(terms.filter(({ by }) => by === "ada").map(({ auditReason }) => auditReason)).toEqual(["maintenance", "done"]);
});

it("a pause by another replica fences the holder at once, and the holder learns of it before its next heartbeat", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  let aborted = false;
  const holder = await a.singleton(name, async ({ abortSignal }) => {
    await untilAborted(abortSignal);
    aborted = true;
  });
  await calm();
  await b.leases.pause(name, { reason: "incident 7" });
  await calm();
  expect(aborted).toBe(true);
  expect(holder.state).toBe("standby");
});

it("an operator preempts a live holder with a reason; the holder is fenced, stops, and stands by", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const holder = await a.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await calm();
  const lease = await b.leases.takeover(name, { reason: "it writes nonsense", by: "ada" });
  expect(lease.token).toBe(2n);
  await stage.clock.elapse(10_000);
  expect(holder.state).toBe("standby");
  expect(stage.lines.find(({ event }) => event === "singleton.lost")?.fields).toMatchObject({ app: "a", name });
  const [, term] = await b.leases.history(name);
  expect(term).toMatchObject({ startReason: "manual", by: "ada", auditReason: "it writes nonsense" });
  await b.leases.release(lease);
  await calm();
  expect(holder.state).toBe("holder");
});

it("a drain over its bound lets the lease expire without a release; a process never runs the body twice at once", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  let running = 0;
  const stubborn = await a.singleton(
    name,
    async () => {
      running++;
      await new Promise<void>(() => {});
    },
    { drain: "2s" },
  );
  await calm();
  const standby = await b.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await calm();
  const stopping = stubborn.stop();
  await stage.clock.elapse(2_000);
  await stopping; // a stop does not wait forever
  expect([stubborn.state, standby.state]).toEqual(["stopped", "standby"]);
  expect(stage.lines.map(({ event }) => event)).toContain("singleton.release_failed");
  await stage.clock.elapse(30_100);
  expect(standby.state).toBe("holder");
  expect(running).toBe(1);
  expect(await stage.story(name)).toMatchObject([
    [1n, "start", "expired"],
    [2n, "timeout", undefined],
  ]);
});

it("acquisition, renewal, loss and release are logged at info with replica and holder, standing by at debug", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const holder = await a.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await calm();
  await b.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await stage.clock.elapse(12_000);
  await holder.stop();
  await calm();
  const of = (event: string) => stage.lines.filter((line) => line.event === event);
  for (const event of ["singleton.acquired", "singleton.renewed", "singleton.released"]) {
    expect(of(event)[0]).toMatchObject({ level: "info", fields: { name, token: 1n } });
    expect(of(event)[0]?.fields.replica).toBeTypeOf("string");
    expect(of(event)[0]?.fields.holder).toBeTypeOf("string");
  }
  expect(of("lease.standby").every(({ level }) => level === "debug")).toBe(true);
  expect(of("lease.standby").length).toBeGreaterThan(0);
});

it("stop may be repeated, also before the first term; a name runs once in an app; bad settings are refused", async () => {
  const stage = await setStage();
  const app = await stage.app("a");
  const singleton = await app.singleton(name, ({ abortSignal }) => untilAborted(abortSignal));
  await expect(app.singleton(name, () => {})).rejects.toThrow("TAPE_BAD_INPUT");
  expect(app.singletons.map(({ name: one }) => one)).toEqual([name]);
  await Promise.all([singleton.stop(), singleton.stop()]);
  expect(singleton.state).toBe("stopped");
  expect(app.singletons).toEqual([]);
  await app.singleton(name, () => {}); // after the stop the name is free again
  const refused = (options: object, called = "other") => expect(app.singleton(called, () => {}, options)).rejects;
  await refused({ ttl: "1m", heartbeat: "2m" }).toThrow("TAPE_BAD_TIMING");
  await refused({ maxStall: "5s" }).toThrow("TAPE_BAD_TIMING");
  await refused({ drain: "soon" }).toThrow("TAPE_BAD_INPUT");
  await refused({}, "").toThrow("TAPE_BAD_INPUT");
});

it("a singleton continues from the checkpoint of the holder before it", async () => {
  const stage = await setStage();
  const [a, b] = [await stage.app("a"), await stage.app("b")];
  const seen: (string | undefined)[] = [];
  const body = async (context: SingletonContext) => {
    seen.push(context.checkpoint);
    await context.saveCheckpoint(`${context.checkpoint ?? ""}.`);
    seen.push(context.checkpoint);
    await untilAborted(context.abortSignal);
  };
  await a.singleton(name, body);
  await calm();
  const second = await b.singleton(name, body);
  await stage.clock.elapse(1_000);
  await a.close();
  await calm();
  expect(second.state).toBe("holder");
  expect(seen).toEqual([undefined, ".", ".", ".."]);
});

import { expect, it } from "vitest";
import { judge } from "../../bench/events/receiver.ts";
import { seededRandom } from "../../src/base/random.ts";
import { eventIdOf } from "../../src/events/event.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { SingletonContext } from "../../src/host/singleton/term.ts";
import { Tape, type TapeOptions } from "../../src/host/tape.ts";
import { effect } from "../../src/sdk/effect.ts";
import { outcome } from "../../src/sdk/outcomes.ts";
import { createRunner, type Runner, workflow } from "../../src/sdk/workflow.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { atEveryBoundary, type BoundaryRound } from "../../testkit/kit/crash.ts";
import type { CrashMode } from "../../testkit/kit/crash-options.ts";
import { TestProcess } from "../../testkit/kit/process.ts";
import { type BodyCall, runnerIn } from "../../testkit/kit/runner.ts";
import { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { WorldLedger } from "../../testkit/kit/world.ts";
import { finished, WorldSink } from "../events/world-sink.ts";
import { isSampled } from "../sample.ts";

const tenant = "default";
const ttlMs = 10_000;
/** One boundary in eight, and every one within eight days. */
const stride = 8;
const none = createRunner({ workflows: [] });

/** Two processes on one store in virtual time. The first is interrupted once, and resumes too late if it is a zombie. */
class Scene {
  readonly time = new VirtualTime();
  readonly store: Store;
  readonly #tapes: { readonly process: TestProcess; readonly tape: Tape }[] = [];
  readonly #crashPointAt: Parameters<BoundaryRound>[1];
  mode: CrashMode | undefined;
  /** Only boundaries of this part are counted. */
  isArmed = true;

  private constructor(store: Store, time: VirtualTime, crashPointAt: Parameters<BoundaryRound>[1]) {
    this.store = store;
    this.time = time;
    this.#crashPointAt = crashPointAt;
  }

  static async open(crashPointAt: Parameters<BoundaryRound>[1]): Promise<Scene> {
    const time = new VirtualTime();
    const opened = await time.during(openStore("memory:", { clock: time, random: seededRandom(1) }));
    // Two processes share it, so that they must wait for each other's leases.
    return new Scene({ ...opened, exclusive: false }, time, crashPointAt);
  }

  async join(
    isFirst: boolean,
    runner: (process: TestProcess) => Runner = () => none,
    more: Partial<TapeOptions> = {},
  ): Promise<{ readonly process: TestProcess; readonly tape: Tape }> {
    const name = isFirst ? "first" : "second";
    const interrupted = {
      crashPointAt: (boundary: Parameters<Parameters<BoundaryRound>[1]>[0]) => {
        if (this.mode !== undefined || !this.isArmed) return undefined;
        this.mode = this.#crashPointAt(boundary);
        return this.mode === "zombie" ? ("pause" as const) : this.mode;
      },
    };
    const process = new TestProcess({ name, clock: this.time, store: this.store, ...(isFirst && interrupted) });
    const seams = { clock: process.clock, random: seededRandom(name), log: () => {} };
    const options = { store: process.store, runner: runner(process), leaseTtl: ttlMs, report: false };
    const opening = Tape.open({ ...options, ...seams, work: false, ...more });
    const tape = await this.time.during(opening);
    this.#tapes.push({ process, tape });
    return { process, tape };
  }

  /** Lets time pass until a paused process would have lost everything, then resumes it and waits for any harm. */
  async outlast({ process }: { readonly process: TestProcess }): Promise<void> {
    this.isArmed = false;
    await this.time.elapse(1.2 * ttlMs);
    process.resume();
    await this.time.elapse(ttlMs);
  }

  async close(): Promise<void> {
    for (const { process, tape } of this.#tapes) if (process.state === "running") await this.time.during(tape.close());
    await this.time.during(this.store.close());
  }
}

async function fanoutIn(crashPointAt: Parameters<BoundaryRound>[1]): Promise<Awaited<ReturnType<BoundaryRound>>> {
  const scene = await Scene.open(crashPointAt);
  const { time, store } = scene;
  const world = new WorldSink(2);
  const start = ({ process, tape }: { process: TestProcess; tape: Tape }): void => {
    const sink = {
      ...{ label: world.label, limits: world.limits },
      send: (...args: Parameters<WorldSink["send"]>) => process.callUpstream("send", () => world.send(...args)),
    };
    tape.fanouts.start({ name: "billing", sink, from: "start", filter: { kinds: ["all"] }, lanes: 2, window: 8 });
  };
  for (let k = 0; k < 3; k++) await time.during(finished(store));
  const first = await scene.join(true);
  start(first);
  await time.elapse(600);
  await time.during(finished(store));
  await time.elapse(600);
  scene.isArmed = false;
  const second = await scene.join(false);
  start(second);
  await scene.outlast(first);
  const page = await time.during(store.read.feed(undefined, undefined, tenant));
  const lease = await time.during(store.read.lease(tenant, { name: "sink billing" }));
  const ledger = world.ledger.map(({ id, tapejournal, sequence, tapetoken, tapeepoch }) => {
    return { id, journal: String(tapejournal), sequence, token: BigInt(tapetoken), epoch: tapeepoch };
  });
  const { lost, outOfOrder, repeats } = judge(page.records.map(eventIdOf), ledger);
  const faults = [
    ...(lost > 0 ? [`${lost} events lost`] : []),
    ...(outOfOrder > 0 ? [`${outOfOrder} events out of order`] : []),
    ...(repeats > (scene.mode === undefined ? 0 : 8) ? [`${repeats} repeats`] : []),
    ...(lease?.state === "HELD" ? [] : [`the sink is ${lease?.state}`]),
  ];
  await scene.close();
  return { reached: scene.mode !== undefined, faults };
}

it("a fan-out survives a crash at every boundary: nothing lost, in order, a window repeated", async () => {
  const { boundaries, rounds, reached } = await atEveryBoundary((_, crashPointAt) => fanoutIn(crashPointAt), {
    only: (_, index) => isSampled(index, stride),
  });
  expect(boundaries).toEqual(
    expect.arrayContaining(["before effect send #1", "after effect send #1", "after fenced.checkpoint #1"]),
  );
  expect(rounds).toBeGreaterThan(0);
  expect(reached).toBe(rounds);
}, 60_000);

const bank = new WorldLedger();
const wire = effect("wire", (n: number, fx) => bank.apply("wire", fx, n, () => n), {
  businessKey: (n) => `invoice ${n}`,
  timeout: "20s",
  observe: (_, fx) => {
    const found = bank.find("wire", fx.businessKey);
    return found === undefined ? outcome.absent() : outcome.confirmed(found.result as number);
  },
});
const mail = effect("mail", (n: number, fx) => bank.applyOnce("mail", fx, n, () => n), {
  ...{ semantics: "idempotent", dispatch: "outbox", timeout: "20s" },
});
const order = workflow("order", async (tape, n: number) => {
  await tape.sleep("1s");
  for (;;) {
    const wired = await tape.attempt(wire.with(n));
    if (wired.status === "confirmed") break;
  }
  return tape.effect(mail.with(n));
});
const runner = createRunner({ workflows: [order], effects: [wire, mail] });
const reactors = ["timers", "recovery", "outbox", "reconciler"];

async function reactIn(crashPointAt: Parameters<BoundaryRound>[1]): Promise<Awaited<ReturnType<BoundaryRound>>> {
  bank.clear();
  const scene = await Scene.open(crashPointAt);
  const { time, store } = scene;
  const calls: BodyCall[] = [];
  const inside = (process: TestProcess): Runner => runnerIn(process, runner, calls);
  const faults: string[] = [];
  /** What a push handler does with one request; each request ends, or its process is interrupted. */
  const request = async ({ tape, process }: { tape: Tape; process: TestProcess }): Promise<void> => {
    const work = async (): Promise<void> => {
      for (const name of reactors) await tape.react(name, { limit: 5, within: "50s" });
    };
    let isOver = false;
    const working = work().then(() => {
      isOver = true;
    });
    working.catch((error: unknown) => faults.push(String(error)));
    for (let ms = 0; !isOver && process.state === "running" && ms < 60_000; ms += 100) await time.elapse(100);
    if (!isOver) return;
    const held = await time.during(store.read.leases(tenant, { held: true, limit: 10 }));
    const own = held.filter(({ label }) => label !== null);
    if (own.length > 0 && scene.mode === undefined) faults.push(`answered with ${own.length} leases`);
  };
  const client = await scene.join(false);
  await time.during(client.tape.start(order, 7, { id: "run" }));
  const first = await scene.join(true, inside);
  for (let k = 0; k < 4; k++) {
    await request(first);
    await time.elapse(1_000);
  }
  const second = await scene.join(false, inside);
  await scene.outlast(first);
  for (let k = 0; k < 12; k++) {
    await request(second);
    await time.elapse(ttlMs);
  }
  const run = await time.during(store.read.run(tenant, "run"));
  if (run?.status !== "COMPLETED" || run.outcome !== 7) faults.push(`the run is ${run?.status}`);
  faults.push(...bank.duplicates().map((what) => `applied twice: ${what}`));
  await scene.close();
  return { reached: scene.mode !== undefined, faults };
}

it("react survives a crash at every boundary: the run ends, and no effect happens twice", async () => {
  const { boundaries, rounds, reached } = await atEveryBoundary((_, crashPointAt) => reactIn(crashPointAt), {
    only: (_, index) => isSampled(index, stride),
  });
  expect(boundaries).toEqual(
    expect.arrayContaining(["after claim.find #1", "before effect wire #1", "after effect mail #1"]),
  );
  expect(rounds).toBeGreaterThan(0);
  expect(reached).toBe(rounds);
}, 60_000);

async function shedIn(crashPointAt: Parameters<BoundaryRound>[1]): Promise<Awaited<ReturnType<BoundaryRound>>> {
  const scene = await Scene.open(crashPointAt);
  const { time } = scene;
  const ledger: { readonly shard: number; readonly token: bigint; readonly by: string; readonly at: number }[] = [];
  const saved = new Map<number, number>();
  const faults: string[] = [];
  const join = async (isFirst: boolean) => {
    const joined = await scene.join(isFirst, () => none, { report: !isFirst });
    const by = joined.process.name;
    const body = async ({ shard, token, checkpoint, saveCheckpoint, abortSignal, assert, sleep }: SingletonContext) => {
      const { index } = shard!;
      let n = Number(checkpoint ?? 0);
      if (n < (saved.get(index) ?? 0)) faults.push(`shard ${index} began at ${n}, behind its checkpoint`);
      for (; !abortSignal.aborted; await sleep(2_000)) {
        assert();
        ledger.push({ shard: index, token, by, at: time.now });
        await saveCheckpoint(String(++n));
        saved.set(index, Math.max(n, saved.get(index) ?? 0));
      }
    };
    void joined.tape.singleton("sweep", body, { shards: 2 }).catch(() => {});
    return joined;
  };
  scene.isArmed = false;
  const first = await join(true);
  await time.elapse(5_000);
  scene.isArmed = true; // from here on it sheds
  await join(false);
  await time.elapse(9_000);
  await scene.outlast(first);
  await time.elapse(10_000);
  for (const [shard, entries] of Map.groupBy(ledger, (entry) => entry.shard)) {
    const isOrdered = entries.every(({ token }, k) => k === 0 || token >= entries[k - 1]!.token);
    if (!isOrdered) faults.push(`shard ${shard} was worked on under a lower token behind a higher one`);
    for (const [token, same] of Map.groupBy(entries, (entry) => entry.token))
      if (new Set(same.map(({ by }) => by)).size > 1) faults.push(`two processes under token ${token} of ${shard}`);
  }
  const recent = ledger.filter(({ at }) => at > time.now - 5_000);
  const holders = new Map(recent.map(({ shard, by }) => [shard, by]));
  if (holders.size < 2) faults.push(`only shards ${[...holders.keys()].join()} are worked on`);
  const isShared = new Set(holders.values()).size === 2;
  if (scene.mode === undefined && !isShared) faults.push("the first process shed no shard");
  await scene.close();
  return { reached: scene.mode !== undefined, faults };
}

it("a process that sheds a shard may crash at every boundary: no shard is left or worked on twice", async () => {
  const round: BoundaryRound = (_, crashPointAt) => shedIn(crashPointAt);
  const { boundaries, rounds, reached } = await atEveryBoundary(round, {
    only: (_, index) => isSampled(index, stride),
  });
  // The append is the end of the term of the shard that it sheds.
  expect(boundaries).toEqual(expect.arrayContaining(["after fenced.checkpoint #1", "after fenced.append #1"]));
  expect(reached).toBe(rounds);
}, 60_000);

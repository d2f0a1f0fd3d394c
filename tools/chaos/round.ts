import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { Runner } from "../../src/sdk/workflow.ts";
import type { RunView } from "../../src/store/contract/store.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { allEffects, allRuns, statesOf, summary, whyUnsettled } from "./evidence.ts";
import type { Deployment, Fault, Injection, NotRun } from "./fault.ts";
import { effectiveKinds, injectFaults } from "./inject-faults.ts";
import { type ClockChange, type Evidence, judge, type Rule } from "./judge.ts";
import { liveRuns, resendSignals } from "./load.ts";
import { type Loader, LoaderProcess, loaderHere } from "./loader.ts";
import type { Place } from "./places.ts";
import { buildProgram, type Flow } from "./program.ts";
import { Replica } from "./replicas.ts";
import { ServerReplica } from "./servers.ts";
import { persistently } from "./store-calls.ts";
import { World } from "./world.ts";

export interface RoundOptions {
  readonly name: string;
  readonly place: Place;
  readonly replicas: number;
  /** Number of servers between the workers and the store. Default 0: each worker opens the store. */
  readonly servers?: number;
  readonly ttlMs: number;
  /** Number of live runs at a time. */
  readonly maxLive?: number;
  /** How long faults are injected. */
  readonly ms: number;
  readonly seed: string;
  /** Receives the ledger and the logs. */
  readonly folder: string;
  /** Every initial injection happens, however long that takes. */
  readonly wholeOpening?: boolean;
  readonly faults: (deployment: Deployment, servers: readonly ServerReplica[]) => Fault[];
  readonly notRun?: readonly NotRun[];
  /** Extra environment of a worker, such as a preload. Slot 0 is the loader, which then runs in a process of its own. */
  readonly env?: (slot: number) => Readonly<Record<string, string>>;
  /** Only the processes under fault may touch the store before the faults are over. */
  readonly secluded?: boolean;
  /** Filled while faults are injected: see {@link Evidence.clockChanges}. */
  readonly clockChanges?: readonly ClockChange[];
  /** See {@link Evidence.loss}. */
  readonly loss?: boolean;
  readonly progress?: (line: string) => void;
  /** Another deployment of the same work, instead of workers and a loader. */
  readonly variant?: Variant;
}

/** Processes of another program, which another loader gives work to. It has no singleton. */
export interface Variant {
  readonly program: { readonly file: string; readonly name: string };
  /** Added to the orders of each process. */
  readonly orders: object;
  loader(parts: {
    readonly world: string;
    readonly flows: Readonly<Record<string, Flow>>;
    readonly runner: Runner;
  }): Promise<Loader>;
  /** Called with the processes before the first starts. */
  deployed(replicas: readonly Replica[]): void;
  /** Rules of its own. */
  judge(client: Tape, runs: readonly RunView[]): Promise<Rule[]>;
  lines(): string[];
}

export interface RoundReport {
  readonly name: string;
  readonly seconds: number;
  /** Broken rules, processes that ended unexpectedly, faults that never took effect. */
  readonly violations: readonly string[];
  readonly injections: readonly Injection[];
  readonly faults: readonly Pick<Fault, "kind" | "effectiveWhen">[];
  readonly notRun: readonly NotRun[];
  /** How often each interesting state was reached. */
  readonly states: Readonly<Record<string, number>>;
  readonly rules: readonly Rule[];
  /** Losses that no guarantee covers. */
  readonly lost: readonly string[];
  /** Summary for the reader of the report. */
  readonly lines: readonly string[];
}

const defaultMaxLive = 60;
/**
 * Settling ends after this long without progress. TTLs, scans and back-offs take seconds, and suspects are driven one at
 * a time. Any progress restarts the period, because a busy machine may be slow; the bound limits the whole.
 */
const settleMs = 60_000;
const settleBoundMs = 600_000;

interface Processes {
  readonly servers: readonly ServerReplica[];
  readonly replicas: readonly Replica[];
  readonly loader: Loader;
}

/** Everything that a round has started. It is closed in reverse order. */
class RoundResources {
  readonly options: RoundOptions;
  readonly started = systemClock.mono();
  readonly world: World;
  readonly #closing: (() => unknown)[] = [];
  #observer: Tape | undefined;
  #runner: Runner | undefined;

  constructor(options: RoundOptions) {
    this.options = options;
    this.world = new World(join(options.folder, "ledger.jsonl"), options.seed);
    this.#closing.push(() => this.world.close());
  }

  get observer(): Tape | undefined {
    return this.#observer;
  }

  get seconds(): number {
    return Math.round((systemClock.mono() - this.started) / 1_000);
  }

  /** A client of the store that drives no runs. */
  async observe(): Promise<Tape> {
    const store = this.options.place.urlFor(0);
    this.#observer ??= await persistently(() => Tape.open({ store, runner: this.#runner!, work: false }));
    return this.#observer;
  }

  async start(): Promise<Processes> {
    const { options } = this;
    const { place, ttlMs, folder, env = () => ({}) } = options;
    const world = await this.world.listen();
    const { flows, runner } = buildProgram({ world, worker: "client" });
    this.#runner = runner;
    const count = options.servers ?? 0;
    const servers = Array.from({ length: count }, (_, k) => new ServerReplica(k + 1, place.urlFor(k + 1), folder));
    this.#closing.push(() => servers.map((server) => server.kill()));
    await Promise.all(servers.map((server) => server.start()));
    const addresses = servers.map((server) => server.url);
    const replicas = Array.from({ length: options.replicas }, (_, k) => {
      const orders = { url: place.urlFor(count > 0 ? 0 : k + 1), servers: addresses, world, ttlMs };
      const { variant } = options;
      if (variant === undefined) return new Replica(k + 1, { orders, folder, env: env(k + 1) });
      return new Replica(k + 1, { orders: { ...orders, ...variant.orders }, folder, program: variant.program });
    });
    options.variant?.deployed(replicas);
    this.#closing.push(() => replicas.map((replica) => replica.kill()));
    const loader = await this.#loader(world, addresses, flows);
    this.#closing.push(() => loader.kill());
    if (options.secluded !== true) await this.observe();
    await Promise.all(replicas.map((replica) => replica.start()));
    if (!replicas.some((replica) => replica.up)) throw new Error("no worker started");
    return { servers, replicas, loader };
  }

  async #loader(world: string, servers: readonly string[], flows: Readonly<Record<string, Flow>>): Promise<Loader> {
    const { place, seed, env, variant } = this.options;
    if (variant !== undefined) return variant.loader({ world, flows, runner: this.#runner! });
    const maxLive = this.options.maxLive ?? defaultMaxLive;
    if (env !== undefined) return new LoaderProcess({ url: place.urlFor(0), world, seed, maxLive }, env(0));
    if (servers.length === 0) return loaderHere(await this.observe(), flows, seed, maxLive);
    const remote = await Tape.connect(servers, { runner: this.#runner!, work: false });
    this.#closing.push(() => remote.close());
    return loaderHere(remote, flows, seed, maxLive);
  }

  async close(): Promise<void> {
    for (const close of this.#closing.toReversed()) await close();
    await this.#observer?.close();
  }
}

/** Runs worker, all five reactors and a singleton in several processes on one store under faults; the world judges. */
export async function runRound(options: RoundOptions): Promise<RoundReport> {
  const { ttlMs, folder, seed, ms, progress = () => {} } = options;
  const resources = new RoundResources(options);
  const { world } = resources;
  try {
    const processes = await resources.start();
    const { servers, replicas, loader } = processes;
    const injections: Injection[] = [];
    const repairs = new Set<Promise<void>>();
    const deployment: Deployment = {
      ...{ replicas, world, ttlMs, folder, injections, loader },
      random: seededRandom(`${seed} faults`),
      repair(work) {
        const all = work.finally(() => repairs.delete(all));
        repairs.add(all);
        all.catch(() => {}); // `repaired` rejects with it
      },
      leasesOf: async (worker) => (resources.observer === undefined ? {} : leasesOf(resources.observer, worker)),
    };
    const faults = options.faults(deployment, servers);
    await loader.start();
    const stopTicker = ticker(() => {
      const hits = [...Map.groupBy(injections, ({ kind }) => kind)].map(([kind, all]) => `${all.length} ${kind}`);
      progress(
        `${options.name}, ${resources.seconds} s: ${world.requests.length} requests; ${hits.join(", ") || "no fault yet"}`,
      );
    });
    try {
      const repaired = async (): Promise<void> => {
        while (repairs.size > 0) await Promise.all(repairs);
      };
      await injectFaults({
        faults,
        injections,
        random: deployment.random,
        ms,
        repaired,
        wholeOpening: options.wholeOpening ?? false,
      });
      for (const replica of replicas) replica.wake();
      await loader.finish();
      return await conclude(resources, processes, injections, faults);
    } finally {
      stopTicker();
    }
  } finally {
    await resources.close();
  }
}

/** After the faults: waits until everything has settled, then judges the evidence. */
async function conclude(
  resources: RoundResources,
  { servers, replicas, loader }: Processes,
  injections: readonly Injection[],
  faults: readonly Fault[],
): Promise<RoundReport> {
  const { options, world } = resources;
  const endedAt = systemClock.mono();
  const client = await resources.observe();
  const { started } = loader.log;
  const resent = options.loss === true ? await resendSignals(client, started) : 0;
  await settle(client, world);
  const settledMs = Math.round(systemClock.mono() - endedAt);
  const evidence: Evidence = {
    started,
    runs: await allRuns(client),
    effects: await allEffects(client),
    ...{ requests: world.requests, owners: world.owners },
    ...(options.variant === undefined && { singletonRequests: world.singletonRequests }),
    clockChanges: options.clockChanges ?? [],
    loss: options.loss ?? false,
  };
  writeFileSync(join(options.folder, "started.json"), JSON.stringify(started));
  for (const replica of replicas) replica.kill(); // then the feed catches up, and nothing changes while the records are folded
  await Promise.all(replicas.map((replica) => replica.gone()));
  const verdict = judge(evidence);
  const folded = (await checkProjection(client.store, [client.tenant])).filter((difference) => !isOrder(difference));
  const rules = [
    ...verdict.rules,
    { rule: "the tables equal the fold of the records", checked: evidence.runs.length, broken: folded },
    ...((await options.variant?.judge(client, evidence.runs)) ?? []),
  ];
  const effective = effectiveKinds(injections);
  return {
    name: options.name,
    seconds: resources.seconds,
    violations: [
      ...[...replicas, ...servers].flatMap(({ collapses }) => collapses),
      ...faults.filter(({ kind }) => !effective.has(kind)).map(({ kind }) => `inconclusive: ${kind} never took effect`),
      ...(await whyUnsettled(client, evidence)),
      ...rules.flatMap(({ broken }) => broken),
    ],
    injections,
    faults: faults.map(({ kind, effectiveWhen }) => ({ kind, effectiveWhen })),
    notRun: options.notRun ?? [],
    states: statesOf(evidence, world),
    rules,
    lost: [...verdict.lost, ...(resent > 0 ? [`${resent} acknowledged signals, which were sent again`] : [])],
    lines: [...summary(evidence, world, settledMs), ...(options.variant?.lines() ?? [])],
  };
}

/**
 * Across journals PostgreSQL's feed has the order of transactions, not of commits: a note that waited for a release can
 * precede it. The fold then reports this difference. It is ignored, because the resulting tables are compared anyway.
 */
const isOrder = (difference: string): boolean => /\(term\.ended\): lease\.release does not apply/.test(difference);

const tickMs = 10_000;

/** Calls the function every ten seconds; the returned function stops it. */
function ticker(call: () => void): () => void {
  const timer = setInterval(call, tickMs);
  timer.unref();
  return () => clearInterval(timer);
}

async function leasesOf({ store, tenant }: Tape, worker: string): Promise<Record<string, number>> {
  const held: Record<string, number> = {};
  const all = await persistently(() => store.read.leases(tenant, { held: true, limit: 1_000 }));
  for (const { label, reactor } of all) {
    if (label === worker && reactor !== null) held[reactor] = (held[reactor] ?? 0) + 1;
  }
  return held;
}

/** Waits until every run has ended, or nothing makes progress any more. */
async function settle(client: Tape, { requests }: World): Promise<void> {
  const startedAt = systemClock.mono();
  let progressAt = startedAt;
  for (let last = ""; ; await systemClock.sleep(100)) {
    const live = await persistently(() => liveRuns(client));
    const now = systemClock.mono();
    const state = `${live} ${requests.length}`;
    if (state !== last) progressAt = now;
    last = state;
    if (live === 0 || now - progressAt > settleMs || now - startedAt > settleBoundMs) return;
  }
}

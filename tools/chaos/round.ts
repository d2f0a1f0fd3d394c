import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { seededRandom } from "../../src/base/random.ts";
import { Tape } from "../../src/host/tape.ts";
import type { Runner } from "../../src/sdk/workflow.ts";
import { checkProjection } from "../../testkit/projection.ts";
import { allEffects, allRuns, statesOf, summary, whyUnsettled } from "./evidence.ts";
import { type Evidence, judge, type Rule, type Stretch } from "./judge.ts";
import { liveRuns, remind } from "./load.ts";
import { type Loader, LoaderProcess, loaderHere } from "./loader.ts";
import type { Place } from "./places.ts";
import { buildProgram, type Flow } from "./program.ts";
import { bittenKinds, rage } from "./rage.ts";
import { Replica } from "./replicas.ts";
import { ServerReplica } from "./servers.ts";
import { persistently } from "./store-calls.ts";
import type { Deployment, Fault, NotRun, Strike } from "./strike.ts";
import { World } from "./world.ts";

export interface RoundOptions {
  readonly name: string;
  readonly place: Place;
  readonly replicas: number;
  /** So many servers stand between the workers and the store. Default 0: each worker opens the store itself. */
  readonly servers?: number;
  readonly ttlMs: number;
  /** Live runs at a time. */
  readonly mostLive?: number;
  /** How long faults happen. */
  readonly ms: number;
  readonly seed: string;
  /** Ledger and logs are left here. */
  readonly folder: string;
  readonly faults: (deployment: Deployment, servers: readonly ServerReplica[]) => Fault[];
  readonly notRun?: readonly NotRun[];
  /** What is preloaded into a worker; 0: into whoever starts runs, who is then a process of its own. */
  readonly env?: (slot: number) => Readonly<Record<string, string>>;
  /** Nobody but the processes under fault may touch the store before the faults are over. */
  readonly secluded?: boolean;
  /** Filled while the faults last: see {@link Evidence.unsteady}. */
  readonly unsteady?: readonly Stretch[];
  /** See {@link Evidence.loss}. */
  readonly loss?: boolean;
  readonly progress?: (line: string) => void;
}

export interface RoundReport {
  readonly name: string;
  readonly seconds: number;
  /** Rules that were broken, processes that ended by themselves, faults that never bit. */
  readonly violations: readonly string[];
  readonly strikes: readonly Strike[];
  readonly faults: readonly Pick<Fault, "kind" | "counts">[];
  readonly notRun: readonly NotRun[];
  /** Interesting states, and how often each was reached. */
  readonly states: Readonly<Record<string, number>>;
  readonly rules: readonly Rule[];
  /** What is not promised and was met. */
  readonly lost: readonly string[];
  /** What happened, for people. */
  readonly lines: readonly string[];
}

const mostLive = 60;
/**
 * TTL, scans and back-offs are seconds, and suspects are driven one at a time. A busy machine may need its while, so it
 * counts anew whenever something has moved on, up to the bound.
 */
const settleMs = 60_000;
const settleBoundMs = 600_000;

interface Processes {
  readonly servers: readonly ServerReplica[];
  readonly replicas: readonly Replica[];
  readonly loader: Loader;
}

/** What a round has started, in the order in which it is closed again, last first. */
class Scene {
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

  /** A client of the store that works on nothing. */
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
      return new Replica(k + 1, { orders, folder, env: env(k + 1) });
    });
    this.#closing.push(() => replicas.map((replica) => replica.kill()));
    const loader = await this.#loader(world, addresses, flows);
    this.#closing.push(() => loader.kill());
    if (options.secluded !== true) await this.observe();
    await Promise.all(replicas.map((replica) => replica.start()));
    if (!replicas.some((replica) => replica.up)) throw new Error("no worker has come up");
    return { servers, replicas, loader };
  }

  async #loader(world: string, servers: readonly string[], flows: Readonly<Record<string, Flow>>): Promise<Loader> {
    const { place, seed, env } = this.options;
    const most = this.options.mostLive ?? mostLive;
    if (env !== undefined) return new LoaderProcess({ url: place.urlFor(0), world, seed, most }, env(0));
    if (servers.length === 0) return loaderHere(await this.observe(), flows, seed, most);
    const remote = await Tape.connect(servers, { runner: this.#runner!, work: false });
    this.#closing.push(() => remote.close());
    return loaderHere(remote, flows, seed, most);
  }

  async close(): Promise<void> {
    for (const close of this.#closing.toReversed()) await close();
    await this.#observer?.close();
  }
}

/** The worker, all five reactors and a singleton in several processes on one store, under faults; judged by the world. */
export async function playRound(options: RoundOptions): Promise<RoundReport> {
  const { ttlMs, folder, seed, ms, progress = () => {} } = options;
  const scene = new Scene(options);
  const { world } = scene;
  try {
    const processes = await scene.start();
    const { servers, replicas, loader } = processes;
    const strikes: Strike[] = [];
    const mending = new Set<Promise<void>>();
    const deployment: Deployment = {
      ...{ replicas, world, ttlMs, folder, strikes, loader },
      random: seededRandom(`${seed} faults`),
      mend(work) {
        const all = work.finally(() => mending.delete(all));
        mending.add(all);
        all.catch(() => {}); // `mended` rejects with it
      },
      leasesOf: async (worker) => (scene.observer === undefined ? {} : leasesOf(scene.observer, worker)),
    };
    const faults = options.faults(deployment, servers);
    await loader.start();
    const ticking = ticker(() => {
      const hits = [...Map.groupBy(strikes, ({ kind }) => kind)].map(([kind, all]) => `${all.length} ${kind}`);
      progress(
        `${options.name}, ${scene.seconds} s: ${world.deeds.length} deeds; ${hits.join(", ") || "no fault yet"}`,
      );
    });
    try {
      const mended = async (): Promise<void> => {
        while (mending.size > 0) await Promise.all(mending);
      };
      await rage({ faults, strikes, random: deployment.random, ms, mended });
      for (const replica of replicas) replica.wake();
      await loader.finish();
      return await concluded(scene, processes, strikes, faults);
    } finally {
      ticking();
    }
  } finally {
    await scene.close();
  }
}

/** The faults are over: everything settles, and the evidence is judged. */
async function concluded(
  scene: Scene,
  { servers, replicas, loader }: Processes,
  strikes: readonly Strike[],
  faults: readonly Fault[],
): Promise<RoundReport> {
  const { options, world } = scene;
  const calmed = systemClock.mono();
  const client = await scene.observe();
  const { started } = loader.book;
  const reminded = options.loss === true ? await remind(client, started) : 0;
  await settle(client, world);
  const settledMs = Math.round(systemClock.mono() - calmed);
  const evidence: Evidence = {
    started,
    runs: await allRuns(client),
    effects: await allEffects(client),
    ...{ deeds: world.deeds, leads: world.leads, owners: world.owners },
    unsteady: options.unsteady ?? [],
    loss: options.loss ?? false,
  };
  writeFileSync(join(options.folder, "started.json"), JSON.stringify(started));
  for (const replica of replicas) replica.kill(); // a quiet store: its feed catches up, nothing changes under the fold
  await Promise.all(replicas.map((replica) => replica.gone()));
  const verdict = judge(evidence);
  const folded = (await checkProjection(client.store, [client.tenant])).filter((one) => !isOrder(one));
  const rules = [
    ...verdict.rules,
    { rule: "the tables are the fold of the records", looked: evidence.runs.length, broken: folded },
  ];
  const bitten = bittenKinds(strikes);
  return {
    name: options.name,
    seconds: scene.seconds,
    violations: [
      ...[...replicas, ...servers].flatMap(({ collapses }) => collapses),
      ...faults.filter(({ kind }) => !bitten.has(kind)).map(({ kind }) => `worthless: ${kind} never bit`),
      ...(await whyUnsettled(client, evidence)),
      ...rules.flatMap(({ broken }) => broken),
    ],
    strikes,
    faults: faults.map(({ kind, counts }) => ({ kind, counts })),
    notRun: options.notRun ?? [],
    states: statesOf(evidence, world),
    rules,
    lost: [...verdict.lost, ...(reminded > 0 ? [`${reminded} acknowledged signals, which were sent again`] : [])],
    lines: summary(evidence, world, settledMs),
  };
}

/**
 * Over journals the feed of PostgreSQL has the order of transactions, not of commits: a note that waited for a release
 * can stand before it. The fold then says so, and the tables it makes are compared all the same.
 */
const isOrder = (difference: string): boolean => /\(term\.ended\): lease\.release does not apply/.test(difference);

const tickMs = 10_000;

/** Calls again and again; the returned function ends it. */
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

/** Until no run lives, or nothing moves any more. */
async function settle(client: Tape, { deeds }: World): Promise<void> {
  const begun = systemClock.mono();
  let moved = begun;
  for (let last = ""; ; await systemClock.sleep(100)) {
    const live = await persistently(() => liveRuns(client));
    const now = systemClock.mono();
    const state = `${live} ${deeds.length}`;
    if (state !== last) moved = now;
    last = state;
    if (live === 0 || now - moved > settleMs || now - begun > settleBoundMs) return;
  }
}

import { systemClock } from "../../src/base/clock.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";
import type { Store } from "../../src/store/contract.ts";
import type { Replica } from "./replicas.ts";
import type { Scene, Stage, World } from "./world.ts";

type Kind = "kill" | "pause";
/** Where a fault waits for somebody: in an act, just before the deed or just after it, or where a timer falls due. */
type Moment = Stage | "due";

/** One fault, and what it hit. */
export interface Hit {
  readonly kind: Kind;
  readonly worker: string;
  /** What it waited for; undefined: nothing. */
  readonly moment: Moment | undefined;
  /** Acts of that process under way in the world at that moment. */
  readonly acts: number;
  /** Leases it held, by reactor. */
  readonly leases: Readonly<Record<string, number>>;
  readonly pausedMs: number;
}

export interface FaultOptions {
  readonly replicas: readonly Replica[];
  readonly world: World;
  readonly store: Store;
  readonly tenant: string;
  readonly ttlMs: number;
  readonly seed: string;
}

type Fault = readonly [kind: Kind, moment: Moment | undefined];

/** What also the shortest round must have seen; chance goes on from there. */
const overture: readonly Fault[] = [
  ["kill", "after"],
  ["pause", "before"],
  ["kill", "before"],
  ["kill", "due"],
  ["pause", "after"],
];

/** How long a fault waits for somebody to be in the middle of an act, before it strikes anywhere. */
const patienceMs = 400;
const graceMs = 30_000;
/** From when a timer falls due to when it has been fired, roughly. */
const firingMs = 15;

/** Kills and stops processes, at random or in the very middle of an act, and writes down what it hit. */
export class Faults {
  readonly hits: Hit[] = [];
  readonly #options: FaultOptions;
  readonly #random: Random;
  readonly #struck = new Set<string>();
  #drawn = 0;
  readonly #mending = new Set<Promise<void>>();
  #armed: { readonly kind: Kind; readonly stage: Stage; readonly fired: () => void } | undefined;

  constructor(options: FaultOptions) {
    this.#options = options;
    this.#random = seededRandom(`${options.seed} faults`);
    options.world.onScene = (scene) => this.#atScene(scene);
  }

  /** Goes on until the time is over; then everybody is woken and whoever was killed is back. */
  async rage(ms: number): Promise<void> {
    const until = systemClock.mono() + ms;
    const bitten = (): boolean => new Set(this.hits.map(({ kind }) => kind)).size === 2;
    // On a busy machine a short round may be over before the first process is back: then it goes on until it is worth it.
    while (systemClock.mono() < until || (!bitten() && systemClock.mono() < until + graceMs)) {
      await systemClock.sleep(100 + this.#random.int(400));
      if (this.#targets().length === 0) continue;
      const [kind, moment] = overture[this.#drawn++] ?? this.#draw();
      if (moment === undefined) this.#anywhere(kind, moment);
      else if (moment === "due") await this.#atTimer(kind);
      else await this.#inAct(kind, moment);
    }
    this.#armed = undefined;
    for (const replica of this.#options.replicas) if (replica.paused) replica.wake();
    await Promise.all(this.#mending);
  }

  #draw(): Fault {
    // A start costs more than a second of a small machine: killing more often would only test Node's start.
    const kind: Kind = this.#random.float() < 0.35 ? "kill" : "pause";
    const moments: readonly (Moment | undefined)[] = ["before", "after", "due", undefined];
    return [kind, moments[this.#random.int(moments.length)]];
  }

  /** Somebody must go on working, or nobody would take over. */
  #targets(): Replica[] {
    const up = this.#options.replicas.filter((replica) => replica.up);
    return up.length > 1 ? up : [];
  }

  #anywhere(kind: Kind, moment: Moment | undefined): void {
    const up = this.#targets();
    if (up.length > 0) this.#strike(kind, up[this.#random.int(up.length)]!, moment);
  }

  /** Strikes somebody just when the next timer is about to be fired: one of them is doing it. */
  async #atTimer(kind: Kind): Promise<void> {
    const now = systemClock.wall();
    const next = Math.min(...this.#options.world.due.filter((at) => at > now));
    const known = next - now <= patienceMs;
    if (known) await systemClock.sleep(next - now + this.#random.int(firingMs));
    this.#anywhere(kind, known ? "due" : undefined);
  }

  /** Strikes whoever is next in the middle of an act; each run is hit so only once, or it would look like poison. */
  async #inAct(kind: Kind, stage: Stage): Promise<void> {
    const struck = new AbortController();
    this.#armed = { kind, stage, fired: () => struck.abort() };
    await systemClock.sleep(patienceMs, struck.signal);
    if (struck.signal.aborted) return;
    this.#armed = undefined;
    this.#anywhere(kind, undefined);
  }

  #atScene({ stage, worker, run }: Scene): void {
    const armed = this.#armed;
    if (armed === undefined || armed.stage !== stage || this.#struck.has(run)) return;
    const replica = this.#targets().find(({ label }) => label === worker);
    if (replica === undefined) return;
    this.#armed = undefined;
    this.#struck.add(run);
    this.#strike(armed.kind, replica, stage);
    armed.fired();
  }

  #strike(kind: Kind, replica: Replica, moment: Moment | undefined): void {
    const { world, ttlMs } = this.#options;
    const worker = replica.label;
    const acts = world.openOf(worker);
    // The first one outlives its leases; of the others some do and some do not.
    const terms = this.hits.some((hit) => hit.kind === "pause") ? 0.2 + 1.6 * this.#random.float() : 1.4;
    const pausedMs = kind === "kill" ? 0 : Math.round(ttlMs * terms);
    const backMs = 50 + this.#random.int(300);
    if (kind === "kill") replica.kill();
    else replica.pause();
    const mend = async (): Promise<void> => {
      const leases = await this.#leasesOf(worker);
      this.hits.push({ kind, worker, moment, acts, leases, pausedMs });
      await systemClock.sleep(kind === "kill" ? backMs : pausedMs);
      if (kind === "kill") await replica.start();
      else if (replica.paused) replica.wake();
    };
    const mending = mend().finally(() => this.#mending.delete(mending));
    this.#mending.add(mending);
  }

  async #leasesOf(worker: string): Promise<Record<string, number>> {
    const { store, tenant } = this.#options;
    const held: Record<string, number> = {};
    for (const { label, reactor } of await store.read.leases(tenant, { held: true, limit: 1_000 })) {
      if (label === worker && reactor !== null) held[reactor] = (held[reactor] ?? 0) + 1;
    }
    return held;
  }
}

/** What the faults hit, in words. */
export function wordsOf(hits: readonly Hit[], ttlMs: number): string[] {
  return (["kill", "pause"] as const).map((kind) => {
    const of = hits.filter((hit) => hit.kind === kind);
    const count = (test: (hit: Hit) => boolean): number => of.filter(test).length;
    const reactors: Record<string, number> = {};
    for (const { leases } of of) for (const name of Object.keys(leases)) reactors[name] = (reactors[name] ?? 0) + 1;
    const holding = Object.entries(reactors).map(([name, n]) => `${n} with leases of ${name}`);
    return [
      `${kind === "kill" ? "kill -9" : "SIGSTOP"}: ${of.length} times`,
      `hit ${count(({ acts }) => acts > 0)} processes inside an act`,
      `${count(({ moment }) => moment === "before")} just before the deed and ${count(({ moment }) => moment === "after")} just after it`,
      `${count(({ moment }) => moment === "due")} where a timer fell due`,
      `${count(({ leases }) => Object.keys(leases).length > 0)} holding leases${holding.length > 0 ? ` (${holding.join(", ")})` : ""}`,
      ...(kind === "pause" ? [`${count(({ pausedMs }) => pausedMs > ttlMs)} past the end of their leases`] : []),
    ].join("; ");
  });
}

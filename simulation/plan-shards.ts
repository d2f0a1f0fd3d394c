import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { type Fault, rightClock, type WrongClock } from "./plan-faults.ts";

/** A singleton in shards, and what becomes of the replicas that share them. */
export interface PlannedShards {
  readonly of: number;
  readonly everyMs: number;
  /** For each replica, how many it holds at most; undefined: all. */
  readonly max: readonly (number | undefined)[];
  /** For each replica, when it starts to take shards. */
  readonly joinAtMs: readonly number[];
  readonly changes: readonly ShardChange[];
  /** How long the first process that sheds a shard is paused at that moment. */
  readonly pauseAtShedMs: number | undefined;
}

export interface ShardChange {
  readonly atMs: number;
  readonly replica: number;
  /** die: the process crashes; leave: it gives its shards back; pause: it stands still. */
  readonly what: "die" | "leave" | "pause";
  /** Until it is back; undefined: never. */
  readonly forMs: number | undefined;
}

/** Share of plans with shards, among those that fit. */
const share = 0.035;

interface Shape {
  readonly replicas: number;
  readonly remote: readonly boolean[];
  readonly clocks: readonly WrongClock[];
  readonly ttlMs: number;
  readonly rewind: unknown;
  readonly wallStep: unknown;
  readonly serverless: unknown;
  readonly sink: unknown;
  readonly talk: unknown;
  readonly schedules: readonly unknown[];
  readonly queues: { readonly queues: readonly unknown[] };
  readonly runs: readonly unknown[];
  readonly faults: readonly Fault[];
  readonly healAtMs: number;
}

/** Worlds with little else to do: those of shards last long. */
const isFit = ({ rewind, wallStep, serverless, sink, talk, schedules, queues, runs, replicas }: Shape): boolean =>
  [rewind, wallStep, serverless, sink, talk].every((one) => one === undefined) &&
  schedules.length + queues.queues.length === 0 &&
  runs.length === 1 &&
  replicas < 4 &&
  !JSON.stringify(runs).includes('"wedgeMs"');

/** Drawn from a generator of its own, so that plans without shards stay unchanged. */
export function withShards<P extends Shape>(
  seed: number | string,
  plan: P,
): P & { readonly shards: PlannedShards | undefined } {
  const random = seededRandom(`shards ${seed}`);
  if (!chance(random, share) || !isFit(plan)) return { ...plan, shards: undefined };
  const replicas = Math.max(plan.replicas, pick(random, [2, 2, 3, 3, 4]));
  const remote = times(replicas, (k) => plan.remote[k] ?? false);
  const of = pick(random, [2, 3, 4, 4, 5, 7]);
  const joinAtMs = times(replicas, (k) => (k === 0 || chance(random, 0.6) ? random.int(2_000) : random.int(25_000)));
  // With two shards for two replicas, one that holds a single shard is not full.
  const full = of > 2 && chance(random, 0.3) ? random.int(replicas) : undefined;
  const changes = changesOf(random, replicas, plan.ttlMs);
  const last = Math.max(...joinAtMs, ...changes.map(({ atMs, forMs = 0 }) => atMs + forMs));
  return {
    ...plan,
    // A clock that is set ends the term of a lease, and then nothing is calm.
    ...{ replicas, remote, clocks: times(replicas, () => rightClock) },
    // Most worlds of shards have few other faults: an even distribution needs a calm time.
    faults: chance(random, 0.5) ? [] : plan.faults,
    healAtMs: Math.max(plan.healAtMs, last + plan.ttlMs + 40_000),
    shards: {
      ...{ of, joinAtMs, changes },
      everyMs: 2_000 + random.int(3_000),
      max: times(replicas, (k) => (k === full ? 1 : undefined)),
      pauseAtShedMs: chance(random, 0.5) ? plan.ttlMs + random.int(8_000) : undefined,
    },
  };
}

/** One or two. Each comes after the previous one is over, so that the time between them can be judged. */
function changesOf(random: Random, replicas: number, ttlMs: number): ShardChange[] {
  const changes: ShardChange[] = [];
  let atMs = 5_000;
  for (const _ of times(1 + random.int(2), (k) => k)) {
    atMs += 4_000 + random.int(15_000);
    const what = pick(random, ["die", "die", "leave", "pause"] as const);
    const isFinal = what === "die" && chance(random, 0.5);
    const forMs = isFinal ? undefined : what === "pause" ? ttlMs + random.int(10_000) : 500 + random.int(20_000);
    changes.push({ atMs, replica: random.int(replicas), what, forMs });
    atMs += (forMs ?? 0) + ttlMs + (chance(random, 0.7) ? 25_000 : 0);
  }
  return changes;
}

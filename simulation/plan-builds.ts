import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";

export const buildNames = ["a", "b"] as const;
export type BuildName = (typeof buildNames)[number];

/** Two builds of one program, and what becomes of their processes and runs. */
export interface PlannedBuilds {
  /** For each replica, the build of its processes. The first two differ. */
  readonly of: readonly BuildName[];
  readonly runs: readonly PlannedPinnedRun[];
  /** A build becomes current. */
  readonly current: { readonly atMs: number; readonly build: BuildName } | undefined;
  readonly moves: readonly { readonly atMs: number; readonly from: BuildName; readonly to: BuildName }[];
  /** All processes of a build are stopped; the first starts again after `forMs`, at the heal otherwise. */
  readonly outage: { readonly atMs: number; readonly build: BuildName; readonly forMs: number | undefined } | undefined;
}

export interface PlannedPinnedRun {
  readonly id: string;
  readonly atMs: number;
  readonly work: PinnedWork;
}

/** What a pinned run does: a step and a rest, as often as it has rests. */
export interface PinnedWork {
  /** Both builds have the same code for it; otherwise every step has another name in each. */
  readonly agrees: boolean;
  readonly restMs: readonly number[];
  /** How long each step takes. */
  readonly workMs: number;
}

/** Share of plans with builds, among those that fit. */
const share = 0.07;

interface Shape {
  readonly replicas: number;
  readonly remote: readonly boolean[];
  readonly clocks: readonly unknown[];
  readonly rewind: unknown;
  readonly wallStep: unknown;
  readonly serverless: unknown;
  readonly shards: unknown;
  readonly retention: unknown;
  readonly runs: readonly unknown[];
  readonly healAtMs: number;
}

/**
 * A process without loops is called by a service that knows no builds, a wedged one must not be stopped, and a run that
 * is deleted cannot be judged.
 */
const isFit = ({ rewind, wallStep, serverless, shards, retention, runs }: Shape): boolean =>
  [rewind, wallStep, serverless, shards, retention].every((one) => one === undefined) &&
  !JSON.stringify(runs).includes('"wedgeMs"');

/** Drawn from a generator of its own, so that plans without builds stay unchanged. */
export function withBuilds<P extends Shape>(
  seed: number | string,
  plan: P,
): P & { readonly builds: PlannedBuilds | undefined } {
  const random = seededRandom(`builds of ${seed}`);
  if (!chance(random, share) || !isFit(plan)) return { ...plan, builds: undefined };
  const replicas = Math.max(plan.replicas, pick(random, [2, 3]));
  const [first, second] = chance(random, 0.5) ? (["a", "b"] as const) : (["b", "a"] as const);
  const runs = times(2 + random.int(3), (k) => ({
    id: `pinned-${k}`,
    atMs: random.int(9_000),
    work: {
      agrees: chance(random, 0.6),
      restMs: times(1 + random.int(3), () => 2 * random.int(4_000)),
      workMs: pick(random, [0, 500, 3_000]),
    },
  }));
  const outage = chance(random, 0.7)
    ? {
        atMs: 1_000 + random.int(10_000),
        build: pick(random, buildNames),
        forMs: chance(random, 0.7) ? 3_000 + random.int(20_000) : undefined,
      }
    : undefined;
  return {
    ...plan,
    replicas,
    remote: times(replicas, (k) => plan.remote[k] ?? false),
    clocks: times(replicas, (k) => plan.clocks[k] ?? plan.clocks[0]!),
    builds: {
      of: times(replicas, (k) => (k === 0 ? first : k === 1 ? second : pick(random, buildNames))),
      runs,
      current: chance(random, 0.6) ? { atMs: 500 + random.int(5_000), build: pick(random, buildNames) } : undefined,
      moves: times(random.int(4), () => {
        const from = pick(random, buildNames);
        return { atMs: 1_500 + random.int(14_000), from, to: from === "a" ? ("b" as const) : ("a" as const) };
      }),
      outage,
    },
  };
}

import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";

/** Ended runs of a tenant of their own, processes that archive and delete them, and their archive. */
export interface PlannedRetention {
  readonly runs: readonly RetainedRun[];
  readonly sweepers: number;
  /** Trees of one file. */
  readonly batch: number;
  readonly everyMs: number;
  /** Longest time of a call to the archive. */
  readonly slowMs: number;
  /** Share of calls that the archive refuses, and of files that it loses or cuts off without an error. */
  readonly failShare: number;
  readonly lossShare: number;
  readonly faults: readonly SweeperFault[];
}

export const retainedWorkflows = ["brief", "lasting", "coded", "kept"] as const;

export interface RetainedRun {
  readonly atMs: number;
  readonly workflow: (typeof retainedWorkflows)[number];
  readonly children: number;
  readonly erasure?: PlannedErasure;
}

/** An operator erases the tree of a run that has ended. */
export interface PlannedErasure {
  /** After the end of the run. */
  readonly afterMs: number;
  /** Records of the run besides: many of them are erased in several parts. */
  readonly steps: number;
  /** The operator's process dies after the first part, and the erasure is repeated. */
  readonly crash: boolean;
}

export const sweeperPlaces = [
  "archive",
  "retention.prune",
  "retention.due",
  "retention.date",
  "fenced.checkpoint",
] as const;

/** A sweeper is interrupted at one of its calls, and is back after a time. */
export interface SweeperFault {
  readonly sweeper: number;
  readonly at: (typeof sweeperPlaces)[number];
  /** The how manieth call. */
  readonly n: number;
  readonly edge: "before" | "after";
  readonly kind: "crash" | "pause" | "fail";
  readonly forMs: number;
}

const retentionShare = 0.06;

const faultOf = (random: Random, sweepers: number): SweeperFault => ({
  sweeper: random.int(sweepers),
  at: pick(random, sweeperPlaces),
  n: 1 + random.int(6),
  edge: pick(random, ["before", "after"] as const),
  kind: pick(random, ["crash", "pause", "pause", "fail"] as const),
  forMs: 500 + random.int(12_000),
});

const erasureOf = (random: Random): PlannedErasure => ({
  afterMs: random.int(6_000),
  steps: pick(random, [0, 0, 700]),
  crash: chance(random, 0.5),
});

/** Drawn from a generator of its own. Not with a store that goes back: it would lose what was archived. */
export function withRetention<P extends { readonly rewind: unknown; readonly wallStep: unknown }>(
  seed: number | string,
  plan: P,
): P & { readonly retention: PlannedRetention | undefined } {
  const random = seededRandom(`retention ${seed}`);
  if (!chance(random, retentionShare) || plan.rewind !== undefined || plan.wallStep !== undefined)
    return { ...plan, retention: undefined };
  const sweepers = pick(random, [1, 2, 2]);
  const erasing = seededRandom(`erasure ${seed}`);
  return {
    ...plan,
    retention: {
      runs: times(4 + random.int(8), () => ({
        atMs: random.int(9_000),
        workflow: pick(random, retainedWorkflows),
        children: pick(random, [0, 0, 1, 2]),
        ...(chance(erasing, 0.4) && { erasure: erasureOf(erasing) }),
      })),
      sweepers,
      batch: pick(random, [1, 2, 3, 50]),
      everyMs: pick(random, [700, 2_000]),
      slowMs: pick(random, [10, 400, 3_000]),
      failShare: pick(random, [0, 0.1, 0.3]),
      lossShare: pick(random, [0, 0.1, 0.3]),
      faults: times(1 + random.int(5), () => faultOf(random, sweepers)),
    },
  };
}

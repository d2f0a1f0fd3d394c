import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { Fault } from "./plan-faults.ts";
import type { PlannedRun } from "./plan-runs.ts";
import type { StreamOp } from "./streaming.ts";

/** The run that streams. */
export const streamer = "streamer";

/** Share of plans with a streamer. */
const streamShare = 0.03;

interface Before {
  readonly runs: readonly PlannedRun[];
  readonly faults: readonly Fault[];
  readonly replicas: number;
  readonly ttlMs: number;
  readonly rewind: unknown;
  readonly talk: unknown;
}

/**
 * A run whose bodies stream, one after the other and side by side. Drawn from a generator of its own, so that plans
 * without it stay unchanged. Not in a rewound store: what its reader knows might be forgotten. Not beside a talker, whose
 * faults are placed by the appends of its replica.
 */
export function withStreams<P extends Before>(seed: number | string, plan: P): P {
  const random = seededRandom(`streams ${seed}`);
  if (plan.rewind !== undefined || plan.talk !== undefined || !chance(random, streamShare)) return plan;
  let count = 0;
  const op = (): StreamOp => ({
    op: "stream",
    name: `stream ${++count}`,
    chunks: 1 + random.int(6),
    gapMs: pick(random, [0, 30, 400]),
    decides: chance(random, 0.5),
  });
  const ops = [op(), { op: "all" as const, branches: times(2, () => [op()]) }, op()];
  const run: PlannedRun = {
    ...{ id: streamer, workflow: "once", program: { ops, attempts: 1 }, atMs: random.int(6_000) },
    ...{ cancelAtMs: undefined, usd: undefined, again: undefined },
  };
  // Around the writes of chunks: a crash, a lost response, or a pause that outlasts the lease.
  const faults = times(plan.replicas + 1, (k): Fault => {
    const kind = pick(random, ["crash", "pause", "pause", "fail"] as const);
    const at = { replica: k % plan.replicas, at: "chunks", n: 1 + random.int(4) } as const;
    const edge = pick(random, ["before", "after"] as const);
    return { ...at, edge, kind, forMs: kind === "fail" ? undefined : plan.ttlMs + 2_000 + random.int(8_000) };
  });
  return { ...plan, runs: [...plan.runs, run], faults: [...faults, ...plan.faults] };
}

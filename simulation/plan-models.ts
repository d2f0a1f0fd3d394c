import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { ModelOp } from "./models.ts";
import type { Fault } from "./plan-faults.ts";
import type { PlannedRun } from "./plan-runs.ts";

/** The run that calls models. */
export const caller = "models";

/** Share of plans with such a run. */
const modelShare = 0.05;

interface Before {
  readonly runs: readonly PlannedRun[];
  readonly faults: readonly Fault[];
  readonly replicas: number;
  readonly ttlMs: number;
  readonly rewind: unknown;
  readonly talk: unknown;
}

/**
 * A run that pays for calls of models, one after the other and side by side, while processes crash around them. Drawn
 * from a generator of its own, so that plans without it stay unchanged. Not in a rewound store, which forgets calls; not
 * beside a talker or a trial, whose faults are placed by the appends of a replica.
 */
export function withModels<P extends Before>(seed: number | string, plan: P): P {
  const random = seededRandom(`models ${seed}`);
  const busy = plan.rewind !== undefined || plan.talk !== undefined || plan.runs.some(({ id }) => id === "trials");
  if (busy || !chance(random, modelShare)) return plan;
  let count = 0;
  const op = (): ModelOp => ({
    op: "model",
    name: `model ${++count}`,
    // The shortest one is no blob.
    chars: pick(random, [5_000, 66_000, 80_000, 600_000]),
    usd: 4,
    cost: 3,
    ms: pick(random, [10, 900, 5_000, 5_000]),
  });
  const ops = [op(), { op: "all" as const, branches: times(2, () => [op()]) }, op()];
  const run: PlannedRun = {
    ...{ id: caller, workflow: "once", program: { ops, attempts: 1 }, atMs: random.int(4_000) },
    ...{ cancelAtMs: undefined, usd: 1_000, again: undefined },
  };
  const faults = times(2 * plan.replicas + 1, (k): Fault => {
    const kind = pick(random, ["crash", "crash", "pause", "fail"] as const);
    // Appends end calls, and heartbeats come in the middle of them.
    const often = chance(random, 0.5);
    const at = {
      replica: k % plan.replicas,
      at: often ? "append" : "renew",
      n: 1 + random.int(often ? 9 : 3),
    } as const;
    const edge = pick(random, ["before", "after"] as const);
    return { ...at, edge, kind, forMs: kind === "fail" ? undefined : plan.ttlMs + 2_000 + random.int(8_000) };
  });
  return { ...plan, runs: [...plan.runs, run], faults: [...faults, ...plan.faults] };
}

import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { Fault } from "./plan-faults.ts";
import type { PlannedRun } from "./plan-runs.ts";
import type { Op } from "./program.ts";

/** A run that a caller starts in a transaction of its own, together with a row. */
export interface PlannedCallerStart {
  readonly id: string;
  readonly atMs: number;
  readonly commits: boolean;
}

/** Share of plans with transactions of callers. */
const transactionShare = 0.08;

interface Before {
  readonly runs: readonly PlannedRun[];
  readonly faults: readonly Fault[];
  readonly replicas: number;
  readonly ttlMs: number;
}

/** Drawn from a generator of its own, so that plans without transactions stay unchanged. */
export function withTransactions<P extends Before>(
  seed: number | string,
  plan: P,
): P & { readonly callers: readonly PlannedCallerStart[] } {
  const random = seededRandom(`transactions ${seed}`);
  if (!chance(random, transactionShare)) return { ...plan, callers: [] };
  let count = 0;
  const transaction = (): Op => ({ op: "transaction", id: `booking ${++count}`, fails: chance(random, 0.1) });
  const added = (): Op =>
    chance(random, 0.3) ? { op: "all", branches: times(2, () => [transaction(), transaction()]) } : transaction();
  const chosen = pick(random, plan.runs);
  const ops = chosen.program.ops.flatMap((op) => (chance(random, 0.7) ? [added(), op] : [op]));
  const program = { ...chosen.program, ops: [...ops, added()] };
  // Around the appends, the commits of steps among them: a lost response, a crash, or a pause that outlasts the lease.
  const faults = times(3, (): Fault => {
    const kind = pick(random, ["fail", "fail", "crash", "pause"] as const);
    const at = { replica: random.int(plan.replicas), at: "append", n: 1 + random.int(9) } as const;
    const edge = pick(random, ["before", "after"] as const);
    return { ...at, edge, kind, forMs: kind === "fail" ? undefined : plan.ttlMs + random.int(9_000) };
  });
  // Processes that are replaced just before they commit a step, or that get no response to the commit.
  const paused = chance(random, 0.5);
  const commits = times(plan.replicas, (replica): Fault => {
    const forMs = plan.ttlMs + 7_000 + random.int(4_000);
    const at = { replica, at: "commit", n: 1 } as const;
    return paused
      ? { ...at, edge: "before", kind: "pause", forMs }
      : { ...at, edge: "after", kind: "fail", forMs: undefined };
  });
  return {
    ...plan,
    runs: plan.runs.map((run) => (run === chosen ? { ...run, program } : run)),
    faults: [...commits, ...plan.faults, ...faults],
    callers: times(2 + random.int(4), (k) => ({
      id: `caller-${k}`,
      atMs: random.int(12_000),
      commits: chance(random, 0.6),
    })),
  };
}

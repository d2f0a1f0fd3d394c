import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { turnGate } from "./generations.ts";
import type { Fault } from "./plan-faults.ts";
import { calmArgs, type PlannedRun, type PlannedSignal } from "./plan-runs.ts";
import { type Alone, isAlone, scoper } from "./plan-scopes.ts";
import type { Op } from "./program.ts";

/** A run whose generations differ, and one that runs the same code for every turn. */
export const endless = "endless";
export const session = "session";

/** Share of the plans without other features of their own. */
const share = 0.2;

interface Before extends Alone {
  readonly signals: readonly PlannedSignal[];
  readonly faults: readonly Fault[];
  readonly replicas: number;
  readonly ttlMs: number;
}

/**
 * Runs that continue as new while signals arrive for gates of later generations, and processes crash around the change.
 * Drawn from a generator of its own, so that plans without them stay unchanged.
 */
export function withGenerations<P extends Before>(seed: number | string, plan: P): P {
  const random = seededRandom(`generations ${seed}`);
  if (!isAlone(plan) || plan.runs.some(({ id }) => id === scoper) || !chance(random, share)) return plan;
  const runs = [endlessOf(random), ...(chance(random, 0.6) ? [sessionOf(random)] : [])];
  const signals = runs.flatMap((run) => signalsOf(random, run));
  const faults = times(plan.replicas + 1, (k): Fault => {
    const kind = pick(random, ["crash", "crash", "pause", "fail"] as const);
    const at = { replica: k % plan.replicas, at: "append", n: 2 + random.int(24) } as const;
    const edge = pick(random, ["before", "after"] as const);
    return { ...at, edge, kind, forMs: kind === "fail" ? undefined : plan.ttlMs + 2_000 + random.int(8_000) };
  });
  return {
    ...plan,
    runs: [...plan.runs, ...runs],
    signals: [...plan.signals, ...signals],
    faults: [...faults, ...plan.faults],
  };
}

const planned = (random: Random, id: string, ops: readonly Op[]): PlannedRun => {
  const atMs = random.int(3_000);
  const cancelAtMs = chance(random, 0.15) ? atMs + random.int(16_000) : undefined;
  return {
    ...{ id, workflow: "once", program: { ops, attempts: 1 }, atMs, cancelAtMs },
    ...{ usd: undefined, again: undefined },
  };
};

function endlessOf(random: Random): PlannedRun {
  const generation = (left: number): Op[] => {
    const ops = times(1 + random.int(3), () => opOf(random));
    if (left > 0) return [...ops, { op: "continue", next: generation(left - 1) }];
    return chance(random, 0.4) ? [...ops, { op: "fail" }] : ops;
  };
  return planned(random, endless, generation(2 + random.int(3)));
}

/** Every turn has the same input, so that its keys and random values differ by the generation alone. */
function sessionOf(random: Random): PlannedRun {
  const effect = pick(random, ["idempotent.inline", "idempotent.outbox", "compensable.idempotent"]);
  const ops: Op[] = [{ op: "effect", effect, args: calmArgs(random), caught: false }];
  if (chance(random, 0.5)) ops.push({ op: "sleep", ms: 2 * random.int(1_500) });
  return planned(random, session, [...ops, { op: "continue", next: "same" }]);
}

function opOf(random: Random): Op {
  const gate = (): Op => ({
    ...{ op: "gate", name: pick(random, ["left", "left", "right"]) },
    ...(chance(random, 0.5) && { timeoutMs: 500 + random.int(9_000) }),
  });
  switch (pick(random, ["effect", "effect", "gate", "gate", "sleep", "step", "race", "child", "child"] as const)) {
    case "effect": {
      const effects = ["compensable.inline", "compensable.outbox", "compensable.idempotent", "idempotent.inline"];
      const faults = chance(random, 0.3) ? pick(random, [["lost"], ["not_sent"], ["refused"]] as const) : [];
      const args = { ...calmArgs(random), faults, answerMs: pick(random, [5, 50, 900, 3_000]) };
      return { op: "effect", effect: pick(random, effects), args, caught: chance(random, 0.7) };
    }
    case "gate":
      return gate();
    case "sleep":
      return { op: "sleep", ms: 2 * random.int(2_000) };
    case "race":
      return { op: "race", branches: [[gate()], [{ op: "sleep", ms: 2 * random.int(1_000) }]] };
    case "child": {
      const rest: Op = { op: "sleep", ms: 2 * random.int(3_000) };
      return { op: "child", ops: [rest], awaited: chance(random, 0.5) };
    }
    default:
      return { op: "step", fails: false };
  }
}

/** More than its first gates take, and often early: the next generation gets the rest. */
function signalsOf(random: Random, { id, atMs }: PlannedRun): PlannedSignal[] {
  return times(2 + random.int(4), (k) => ({
    ...{ run: id, gate: id === session ? turnGate : pick(random, ["left", "left", "right"]) },
    ...{ atMs: atMs + random.int(14_000), key: chance(random, 0.35) ? undefined : `early ${k}` },
  }));
}

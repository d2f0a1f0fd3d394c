import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import type { SimulatedFault } from "./effects.ts";
import type { Fault } from "./plan-faults.ts";
import { calmArgs, type PlannedRun } from "./plan-runs.ts";
import type { Op } from "./program.ts";
import type { ScopeOp } from "./scope-work.ts";

/** The run with scopes. */
export const scoper = "scopes";

/** Share of the plans without other features of their own. */
const scopeShare = 0.18;
/** Scopes inside scopes. */
const nested = 2;
const otherRuns = ["trials", "outage", "models", "streamer", "ends-in-doubt"];

/** An effect that could not be sent waits, and the end of its scope withdraws it. */
const effectFaults: readonly (readonly SimulatedFault[])[] = [
  ["lost"],
  ["refused"],
  ["not_sent", "not_sent"],
  ["not_sent", "not_sent", "not_sent"],
];

/** What a plan must not have beside a run whose code is judged by what it sees. */
export interface Alone {
  readonly runs: readonly PlannedRun[];
  readonly rewind: unknown;
  readonly talk: unknown;
  readonly sink: unknown;
  readonly shards: unknown;
  readonly serverless: unknown;
  readonly retention: unknown;
  readonly callers: readonly unknown[];
  readonly schedules: readonly unknown[];
  readonly queues: { readonly queues: readonly unknown[] };
  readonly objects: { readonly calls: readonly unknown[] };
}

interface Before extends Alone {
  readonly faults: readonly Fault[];
  readonly replicas: number;
  readonly ttlMs: number;
}

/** No feature whose faults are placed by the calls of a replica, and no rewound store, which forgets what code has seen. */
export const isAlone = (plan: Alone): boolean =>
  [plan.rewind, plan.talk, plan.sink, plan.shards, plan.serverless, plan.retention].every((one) => one === undefined) &&
  plan.queues.queues.length + plan.objects.calls.length + plan.callers.length + plan.schedules.length === 0 &&
  !plan.runs.some(({ id }) => otherRuns.includes(id));

/**
 * A run with scopes, time-outs and sagas inside each other and detached runs, while processes crash around their ends.
 * Drawn from a generator of its own, so that plans without it stay unchanged.
 */
export function withScopes<P extends Before>(seed: number | string, plan: P): P {
  const random = seededRandom(`scopes ${seed}`);
  if (!isAlone(plan) || !chance(random, scopeShare)) return plan;
  const draw = new ScopeDraw(random);
  const atMs = random.int(3_000);
  const ops = times(2 + random.int(2), () => [draw.effect(), draw.scope(nested)]).flat();
  const run: PlannedRun = {
    ...{ id: scoper, workflow: "once", atMs, usd: undefined, again: undefined },
    program: { ops: chance(random, 0.25) ? [...ops, { op: "fail" }] : ops, attempts: 1 },
    cancelAtMs: chance(random, 0.25) ? atMs + random.int(12_000) : undefined,
  };
  const faults = times(plan.replicas + 1, (k): Fault => {
    const kind = pick(random, ["crash", "crash", "pause", "fail"] as const);
    const at = { replica: k % plan.replicas, at: "append", n: 2 + random.int(24) } as const;
    const edge = pick(random, ["before", "after"] as const);
    return { ...at, edge, kind, forMs: kind === "fail" ? undefined : plan.ttlMs + 2_000 + random.int(8_000) };
  });
  return { ...plan, runs: [...plan.runs, run], faults: [...faults, ...plan.faults] };
}

class ScopeDraw {
  readonly #random: Random;
  #count = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  scope(depth: number): ScopeOp<Op> {
    const random = this.#random;
    const kind = pick(random, ["scope", "timeout", "timeout", "saga", "saga", "saga"] as const);
    const name = `${kind} ${++this.#count}`;
    const ops = times(1 + random.int(3), () => this.#op(depth));
    return {
      ...{ op: "scope", kind, name },
      ops: kind === "saga" && chance(random, 0.5) ? [...ops, { op: "fail" }] : ops,
      timeoutMs: kind === "timeout" ? pick(random, [40, 900, 900, 3_000, 9_000]) : undefined,
      cancelMs: kind === "scope" && chance(random, 0.7) ? pick(random, [0, 40, 900, 3_000]) : undefined,
    };
  }

  /** Sometimes in doubt, and often still on its way when its scope ends. */
  effect(): Op {
    const random = this.#random;
    const effect = pick(random, ["compensable.inline", "compensable.outbox", "compensable.idempotent"]);
    const faults = chance(random, 0.4) ? pick(random, effectFaults) : [];
    const slow = { travelMs: pick(random, [5, 50, 900]), answerMs: pick(random, [5, 50, 900, 3_000]) };
    return { op: "effect", effect, args: { ...calmArgs(random), ...slow, faults }, caught: chance(random, 0.2) };
  }

  #op(depth: number): Op {
    const random = this.#random;
    const inside = depth > 0 && chance(random, 0.4);
    const kind = inside
      ? pick(random, ["scope", "scope", "child", "child", "all", "race"] as const)
      : pick(random, ["effect", "effect", "effect", "sleep", "gate", "step", "detached", "detached"] as const);
    switch (kind) {
      case "scope":
        return this.scope(depth - 1);
      case "child":
        return { op: kind, ops: [this.effect()], awaited: chance(random, 0.7) };
      case "all":
      case "race":
        return { op: kind, branches: times(2, () => [this.#op(depth - 1)]) };
      case "effect":
        return this.effect();
      case "sleep":
        return { op: kind, ms: 2 * random.int(2_000) };
      case "gate":
        return { op: kind, name: "left", timeoutMs: 500 + random.int(9_000) };
      case "step":
        return { op: kind, fails: chance(random, 0.2) };
      case "detached":
        return {
          op: kind,
          ops: [
            { op: "sleep", ms: 2 * random.int(6_000) },
            { op: "step", fails: false },
          ],
        };
    }
  }
}

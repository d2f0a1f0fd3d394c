import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick } from "./draw.ts";
import { type Fault, type Rewind, rightClock, type WrongClock } from "./plan-faults.ts";
import type { PlannedRun } from "./plan-runs.ts";
import type { TrialOp } from "./trials.ts";

/** Shares of plans with a trial, and with one whose process is wedged. */
const trialShare = 0.08;
const wedgeShare = 0.04;
/** Share of plans with an outage that a step or a decision outlasts, or does not. */
const outageShare = 0.05;
/** Share of the latter in which the body itself is the cause. */
const endlessShare = 0.35;

interface TrialPlan {
  readonly runs: readonly PlannedRun[];
  readonly replicas: number;
  readonly faults: readonly Fault[];
  readonly rewind: Rewind | undefined;
  readonly clocks: readonly WrongClock[];
}

/** Drawn from a generator of its own, so that plans without trials stay unchanged. */
export function withTrials<P extends TrialPlan>(seed: number | string, plan: P): P {
  const random = seededRandom(`trials ${seed}`);
  if (plan.replicas > 1 && chance(random, wedgeShare)) {
    // Nothing else goes wrong, so that the time of the takeover can be judged.
    const drawn = { ...trialOf(random, 0), fails: 0, hangs: 0, timeoutMs: undefined };
    const wedged: TrialOp = chance(random, endlessShare) ? { ...drawn, endless: true } : { ...drawn, wedgeMs: 60_000 };
    const calm = { faults: [], rewind: undefined, clocks: plan.clocks.map(() => rightClock) };
    return { ...plan, ...calm, runs: [...plan.runs, runOf(random, [wedged])] };
  }
  if (!chance(random, trialShare)) return plan;
  const trials = Array.from({ length: 1 + random.int(2) }, (_, k) => trialOf(random, k));
  return { ...plan, runs: [...plan.runs, runOf(random, trials)] };
}

/** A run that has done something that it would compensate, and whose next step calls an upstream that is down. */
export function withOutages<P extends TrialPlan>(seed: number | string, plan: P): P {
  const random = seededRandom(`outages ${seed}`);
  if (!chance(random, outageShare) || plan.runs.some(({ id }) => id === "trials")) return plan;
  const drawn = trialOf(random, 0);
  const attempts = 1 + random.int(3);
  const giveUpAfterMs = pick(random, [5_000, 50_000, 600_000]);
  const outage: TrialOp = {
    ...drawn,
    name: "outage",
    attempts,
    // A pause of more than two minutes would be taken for a run that is lost.
    fails: attempts + (giveUpAfterMs > 60_000 ? random.int(2) : 1 + random.int(4)),
    giveUpAfterMs,
  };
  const args = { id: "outage", businessKey: "outage", faults: [], compensateFaults: [], unresponsive: false };
  const times = { observations: [], travelMs: 20, answerMs: 40 };
  const paid = { op: "effect", effect: "compensable.inline", args: { ...args, ...times }, caught: false } as const;
  return { ...plan, runs: [...plan.runs, { ...runOf(random, [paid, outage]), id: "outage", workflow: "once" }] };
}

function trialOf(random: Random, k: number): TrialOp {
  const attempts = 2 + random.int(4);
  const timeoutMs = pick(random, [undefined, 500, 3_000, 20_000]);
  return {
    op: "trial",
    name: `trial ${k}`,
    fails: random.int(attempts + 1),
    hangs: timeoutMs === undefined ? 0 : random.int(3),
    hangMs: (timeoutMs ?? 0) + pick(random, [-400, 100, 4_000]),
    timeoutMs,
    attempts,
    baseMs: pick(random, [10, 900, 3_000]),
    wedgeMs: undefined,
  };
}

function runOf(random: Random, ops: PlannedRun["program"]["ops"]): PlannedRun {
  return {
    id: "trials",
    workflow: "limited",
    program: { ops, attempts: 1 },
    atMs: random.int(4_000),
    cancelAtMs: undefined,
    usd: undefined,
    again: undefined,
  };
}

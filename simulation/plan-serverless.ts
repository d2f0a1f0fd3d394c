import { type Random, seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { type Fault, rightClock, type WrongClock } from "./plan-faults.ts";
import type { PlannedRun } from "./plan-runs.ts";

/** No replica has a loop: wake-ups and alarms call them. */
export interface PlannedServerless {
  /** Share of wake-ups that are lost, and of those that arrive twice. */
  readonly wakeLoss: number;
  readonly wakeDouble: number;
  readonly wakeDelayMs: number;
  /** How far the alarm service's clock is ahead. Below one bound, see `minAheadBounds`. */
  readonly clockOffMs: number;
  /** Share of requests for an alarm that are refused, and of those whose response is lost. */
  readonly refused: number;
  readonly lost: number;
  /** How long a request may take; unfinished runs are released then. */
  readonly withinMs: number;
}

/** Share of plans without a loop. */
const share = 0.08;

interface Shape {
  readonly replicas: number;
  readonly remote: readonly boolean[];
  readonly clocks: readonly WrongClock[];
  readonly rewind: unknown;
  readonly wallStep: unknown;
  readonly callers: readonly unknown[];
  readonly runs: readonly PlannedRun[];
  readonly faults: readonly Fault[];
  readonly healAtMs: number;
}

/**
 * Drawn from a generator of its own. Only worlds whose writes all go through replicas: a restore, a caller's own
 * transaction and a store whose clock is set have no alarm. Clocks of replicas are nearly right.
 */
export function withServerless<P extends Shape>(
  seed: number | string,
  plan: P,
): P & { readonly serverless: PlannedServerless | undefined } {
  const random = seededRandom(`serverless ${seed}`);
  const { replicas, remote, rewind, wallStep, callers } = plan;
  const isWedged = JSON.stringify(plan.runs).includes('"wedgeMs"'); // judged in a world where no process dies
  const isFit = rewind === undefined && wallStep === undefined && callers.length === 0 && !remote.includes(true);
  if (!chance(random, share) || !isFit) return { ...plan, serverless: undefined };
  const off = (): WrongClock => ({ ...rightClock, offMs: random.int(2_000) - 1_000 });
  const serverless = {
    wakeLoss: pick(random, [0, 0.5, 1]),
    wakeDouble: pick(random, [0, 0.3]),
    wakeDelayMs: pick(random, [0, 100, 3_000]),
    clockOffMs: pick(random, [0, 0, -2_500, 2_500, 2_900]),
    refused: pick(random, [0, 0.05]),
    lost: pick(random, [0, 0.05]),
    withinMs: withinOf(seed, plan.runs),
  };
  const clocks = times(replicas, () => (chance(random, 0.3) ? off() : rightClock));
  const runs = [...plan.runs.map((run, k) => ({ ...run, atMs: run.atMs + k * apartMs })), sleeperOf(random)];
  const faults = chance(random, 0.7) && !isWedged ? [...plan.faults, deathOf(random, replicas)] : plan.faults;
  return { ...plan, clocks, runs, faults, healAtMs: plan.healAtMs + runs.length * apartMs, serverless };
}

/** Short only where no step outlasts it: such a run would never end. */
function withinOf(seed: number | string, runs: readonly PlannedRun[]): number {
  const isLong = /"op":"trial"|"unresponsive":true/.test(JSON.stringify(runs));
  return isLong ? 20_000 : pick(seededRandom(`within ${seed}`), [4_000, 20_000]);
}

/** Longer than an alarm is set ahead: then no alarm of another run finds what one has left. */
const apartMs = 30_000;

/** A process dies between its alarm, its commit and its wake-up. */
const deathOf = (random: Random, replicas: number): Fault => ({
  replica: random.int(replicas),
  at: pick(random, ["intake", "intake", "effect", "claim"]),
  n: 1 + random.int(3),
  edge: pick(random, ["before", "after", "after"]),
  kind: "crash",
  forMs: random.int(20_000),
});

/** A run whose timer no other alarm covers. */
function sleeperOf(random: Random): PlannedRun {
  const sleep = { op: "sleep" as const, ms: 35_000 + random.int(40_000) };
  return {
    id: "sleeper",
    workflow: "once",
    program: { ops: [sleep, { op: "step", fails: false }], attempts: 1 },
    atMs: random.int(4_000),
    cancelAtMs: undefined,
    usd: undefined,
    again: undefined,
  };
}

import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { approver } from "./guarded-gate.ts";
import type { PlannedAction, PlannedSchedule } from "./plan-actions.ts";
import { compensableOf, opsOf, type PlannedRun } from "./plan-runs.ts";
import type { Op, Program } from "./program.ts";

/** Later additions to plans. Each is drawn from a generator of its own, so that plans without it stay unchanged. */

const calls = [
  "append",
  "append",
  "append many",
  "park",
  "renew",
  "acquire",
  "signal",
  "cancel",
  "evidence",
  "fire",
  "read",
] as const;

export interface StrangerAction {
  readonly atMs: number;
  readonly what: (typeof calls)[number];
}

/** Share of plans with strangers. */
const strangerShare = 0.06;

export function strangersOf(seed: number | string): StrangerAction[] {
  const random = seededRandom(`strangers ${seed}`);
  if (!chance(random, strangerShare)) return [];
  return times(6 + random.int(8), () => ({ atMs: random.int(12_000), what: pick(random, calls) }));
}

export interface GuardedSignal {
  readonly run: string;
  readonly atMs: number;
  readonly by: string | undefined;
  readonly value: number | string;
  readonly key: string;
}

/** Share of plans with a guarded gate. */
const guardedShare = 0.06;

export function withGuarded<P extends { readonly runs: readonly PlannedRun[] }>(
  seed: number | string,
  plan: P,
): P & { readonly guarded: readonly GuardedSignal[] } {
  const random = seededRandom(`guarded ${seed}`);
  if (!chance(random, guardedShare)) return { ...plan, guarded: [] };
  const chosen = pick(random, plan.runs);
  const program = { ...chosen.program, ops: [{ op: "guarded" } as const, ...chosen.program.ops] };
  const guarded = times(3 + random.int(4), (k) => ({
    run: chosen.id,
    atMs: random.int(9_000),
    by: pick(random, [approver, approver, "eve", undefined]),
    value: chance(random, 0.5) ? k : "many",
    key: `guarded ${k}`,
  }));
  return { ...plan, runs: plan.runs.map((run) => (run === chosen ? { ...run, program } : run)), guarded };
}

/** A run that is created without a worker and may be cancelled before its first term. */
export interface PlannedUnstarted {
  readonly id: string;
  /** A workflow that no process has, or one that all have. */
  readonly workflow: "nowhere" | "once";
  readonly program: Program;
  readonly atMs: number;
  readonly cancelAfterMs: number;
}

/** Share of plans with a run that may never start. */
const unstartedShare = 0.08;
/** Share of these that have started and wait when they are cancelled, as free as a run that never started. */
const waitingShare = 0.6;

export function unstartedOf(seed: number | string): PlannedUnstarted | undefined {
  const random = seededRandom(`unbegun ${seed}`);
  if (!chance(random, unstartedShare)) return undefined;
  const drawn: PlannedUnstarted = {
    id: "unstarted",
    workflow: chance(random, 0.5) ? "nowhere" : "once",
    program: { ops: opsOf(random, 1 + random.int(3), 1), attempts: 1 },
    atMs: random.int(6_000),
    cancelAfterMs: chance(random, 0.5) ? random.int(5) : random.int(4_000),
  };
  if (!chance(random, waitingShare)) return drawn;
  const wait: Op = chance(random, 0.5) ? { op: "gate", name: "left" } : { op: "sleep", ms: 20_000 };
  const program: Program = { ops: [{ op: "step", fails: false }, wait], attempts: 1 };
  return { ...drawn, workflow: "once", program, cancelAfterMs: 2_000 + random.int(5_000) };
}

/** Share of plans in which an operator forks a run and names no compensated effect. */
const forkShare = 0.05;

/** The run has an obligation from its first operation on. */
export function withForks<
  P extends { readonly runs: readonly PlannedRun[]; readonly actions: readonly PlannedAction[] },
>(seed: number | string, plan: P): P {
  const random = seededRandom(`forks ${seed}`);
  if (!chance(random, forkShare)) return plan;
  const chosen = pick(random, plan.runs);
  const end: Op[] = chance(random, 0.6) ? [{ op: "fail" }] : [];
  const program = { ...chosen.program, ops: [compensableOf(random), ...chosen.program.ops, ...end] };
  const forks = times(1 + random.int(2), () => ({
    atMs: 2_000 + random.int(20_000),
    what: "fork unnamed" as const,
    run: chosen.id,
  }));
  return {
    ...plan,
    runs: plan.runs.map((run) => (run === chosen ? { ...run, program } : run)),
    actions: [...plan.actions, ...forks],
  };
}

/** The wall clock of the store's machine is set. */
export interface WallStep {
  readonly atMs: number;
  readonly byMs: number;
}

/** Share of plans in which the store's clock is set. */
const stepShare = 0.05;
/** Longer than any simulation lasts, so that every time shows whether it was read before or after the step. */
export const dayMs = 86_400_000;

/** Calendar-based operations are left out: a sleep until a date one day away would be correct, and would never end. */
export function withWallStep<
  P extends {
    readonly runs: readonly PlannedRun[];
    readonly schedules: readonly PlannedSchedule[];
    readonly rewind: unknown;
  },
>(seed: number | string, plan: P): P & { readonly wallStep: WallStep | undefined } {
  const random = seededRandom(`wall step ${seed}`);
  if (!chance(random, stepShare)) return { ...plan, wallStep: undefined };
  const wallStep = { atMs: 500 + random.int(8_000), byMs: chance(random, 0.5) ? dayMs : -dayMs };
  const lengths = JSON.stringify(plan.runs).replace(
    /("op":"sleep","ms":)(\d+)/g,
    (_all, before: string, ms: string) => before + String(Number(ms) + (Number(ms) % 2)),
  );
  return { ...plan, runs: JSON.parse(lengths) as readonly PlannedRun[], schedules: [], rewind: undefined, wallStep };
}

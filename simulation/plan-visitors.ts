import { seededRandom } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { approver } from "./guarded-gate.ts";
import type { PlannedAction, PlannedSchedule } from "./plan-others.ts";
import { opsOf, owingOf, type PlannedRun } from "./plan-runs.ts";
import type { Op, Program } from "./program.ts";

/**
 * What came into the worlds later. Each is drawn by itself, so that the worlds without it are what they were before.
 */

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

export interface StrangerDeed {
  readonly atMs: number;
  readonly what: (typeof calls)[number];
}

/** Of the worlds, those with strangers. */
const strangerShare = 0.06;

export function strangersOf(seed: number | string): StrangerDeed[] {
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

/** Of the worlds, those with a guarded gate. */
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

/** A run that a program without a worker starts, and that somebody cancels before anybody may have begun it. */
export interface PlannedUnbegun {
  readonly id: string;
  /** One that no process has, or one that all have. */
  readonly workflow: "nowhere" | "once";
  readonly program: Program;
  readonly atMs: number;
  readonly cancelAfterMs: number;
}

/** Of the worlds, those with one that may never begin. */
const unbegunShare = 0.06;

export function unbegunOf(seed: number | string): PlannedUnbegun | undefined {
  const random = seededRandom(`unbegun ${seed}`);
  if (!chance(random, unbegunShare)) return undefined;
  return {
    id: "unbegun",
    workflow: chance(random, 0.5) ? "nowhere" : "once",
    program: { ops: opsOf(random, 1 + random.int(3), 1), attempts: 1 },
    atMs: random.int(6_000),
    cancelAfterMs: chance(random, 0.5) ? random.int(5) : random.int(4_000),
  };
}

/** Of the worlds, those in which somebody forks a run and names nothing that was undone. */
const forkShare = 0.05;

/** The run owes something from its beginning. */
export function withForks<P extends { readonly runs: readonly PlannedRun[]; readonly deeds: readonly PlannedAction[] }>(
  seed: number | string,
  plan: P,
): P {
  const random = seededRandom(`forks ${seed}`);
  if (!chance(random, forkShare)) return plan;
  const chosen = pick(random, plan.runs);
  const end: Op[] = chance(random, 0.6) ? [{ op: "fail" }] : [];
  const program = { ...chosen.program, ops: [owingOf(random), ...chosen.program.ops, ...end] };
  const forks = times(1 + random.int(2), () => ({
    atMs: 2_000 + random.int(20_000),
    what: "fork unnamed" as const,
    run: chosen.id,
  }));
  return {
    ...plan,
    runs: plan.runs.map((run) => (run === chosen ? { ...run, program } : run)),
    deeds: [...plan.deeds, ...forks],
  };
}

/** The wall clock of the store's machine is set. */
export interface WallStep {
  readonly atMs: number;
  readonly byMs: number;
}

/** Of the worlds, those whose store's clock is set. */
const stepShare = 0.05;
/** Longer than any simulation lasts: of every time one can tell whether it was read before the step or after. */
export const dayMs = 86_400_000;

/**
 * What goes by the calendar is left out of such a world: a sleep until a moment that is a day away would
 * be right, and would never end.
 */
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

import type { Random } from "../src/base/random.ts";
import { chance, pick, times } from "./draw.ts";
import { opsOf, type PlannedRun } from "./plan-runs.ts";
import type { Program } from "./program.ts";

/** An operator action other than resolving effects. */
export interface PlannedAction {
  readonly atMs: number;
  readonly what:
    | "take over"
    | "take over if stale"
    | "redrive"
    | "fork"
    | "fork unnamed"
    | "pause the singleton"
    | "take the singleton";
  readonly run: string;
}

export interface PlannedSchedule {
  readonly id: string;
  readonly everySeconds: number;
  readonly overlap: "skip" | "allow" | "wait";
  readonly catchUp: "all" | "latest" | "none";
  readonly program: Program;
  readonly atMs: number;
  /** During a pause nothing falls due. */
  readonly pause: { readonly fromMs: number; readonly toMs: number } | undefined;
  readonly deleteAtMs: number;
}

/** One operation on a value by a client. */
export interface PlannedValueWrite {
  readonly client: number;
  readonly atMs: number;
  readonly key: string;
  readonly what: "create" | "put" | "swap" | "delete" | "read" | "update";
}

/** A background job that all replicas stand by for. */
export interface PlannedSingleton {
  readonly everyMs: number;
  /** Its body sometimes throws. */
  readonly throws: boolean;
}

export function actionsOf(random: Random, runs: readonly PlannedRun[], singleton: boolean): PlannedAction[] {
  const whats = ["take over", "take over", "take over if stale", "redrive", "redrive", "fork", "fork"] as const;
  const more = ["pause the singleton", "take the singleton"] as const;
  return times(1 + random.int(2), () => ({
    atMs: random.int(14_000),
    what: singleton && chance(random, 0.8) ? pick(random, more) : pick(random, whats),
    run: pick(random, runs).id,
  }));
}

export function scheduleOf(random: Random): PlannedSchedule {
  const atMs = random.int(2_000);
  const fromMs = atMs + random.int(8_000);
  return {
    id: "tick",
    everySeconds: 2 + random.int(5),
    overlap: pick(random, ["skip", "allow", "wait"] as const),
    catchUp: pick(random, ["all", "latest", "none"] as const),
    program: { ops: opsOf(random, 1, 0), attempts: 1 },
    atMs,
    pause: chance(random, 0.3) ? { fromMs, toMs: fromMs + random.int(8_000) } : undefined,
    deleteAtMs: atMs + 6_000 + random.int(14_000),
  };
}

export function valueWritesOf(random: Random): PlannedValueWrite[] {
  const whats = ["create", "put", "swap", "swap", "swap", "delete", "read", "update", "update"] as const;
  return times(4 + random.int(8), () => ({
    client: random.int(3),
    atMs: random.int(8_000),
    key: pick(random, ["x", "x", "y"]),
    what: pick(random, whats),
  }));
}

import { z } from "zod";
import { TapeError } from "./errors.ts";
import type { CycleStep } from "./queue-cycle.ts";

/**
 * Queues: how many runs may run at once, in all and per key, how often they may start, and whose turn is next. Pure
 * rules, the same for every store.
 *
 *   queue      a name with limits
 *   partition  the runs of one key in a queue, in their order
 *   slot       what a run needs to run; a queue has as many as its concurrency
 */

/** `running`: a run has its slot while it runs. `started`: from its first term until it has ended, also while it waits. */
export const countModes = ["running", "started"] as const;
/** What counts towards the limits of a queue. */
export type CountMode = (typeof countModes)[number];

/**
 * DELAYED: not in its partition before its start time. QUEUED: waits in its partition. HELD: has a slot. PARKED: has
 * run, and gave up its slot while it waits. A run that is decided or ended has no slot any more.
 */
export const slotStates = ["DELAYED", "QUEUED", "HELD", "PARKED"] as const;
/** The state of a run in its queue. */
export type SlotState = (typeof slotStates)[number];

/** Of runs that have run before and continue. They come before every priority, and pay no rate. */
export const resumedClass = 0;
/** 1 is served first. */
export const minPriority = 1;
export const maxPriority = 9;
export const defaultPriority = 5;

export const onConflicts = ["join", "reject", "cancel"] as const;
/** What a start does if a live run of its workflow has the same unique key. */
export type OnConflict = (typeof onConflicts)[number];

/** Weights are stored in thousandths. */
export const weightUnit = 1_000;
const maxWeight = 1_000 * weightUnit;

const maxSlots = 1_000_000;
/** A year. */
const maxPerMs = 366 * 86_400_000;

const slots = z.int().min(1).max(maxSlots);
const rate = z.strictObject({
  /** Starts per `perMs`, spread evenly. */
  limit: z.int().min(1).max(1_000_000_000),
  perMs: z.int().min(1).max(maxPerMs),
  /** How many may start at once. */
  burst: z.int().min(1).max(maxSlots),
});
const spec = z.strictObject({
  concurrency: slots.exactOptional(),
  /** Of one process. The claimant applies it. */
  perWorker: slots.exactOptional(),
  rate: rate.exactOptional(),
  perKey: z.strictObject({ concurrency: slots.exactOptional(), rate: rate.exactOptional() }).exactOptional(),
  counts: z.enum(countModes),
});
const change = z.strictObject({
  concurrency: slots.nullable().exactOptional(),
  rate: rate.nullable().exactOptional(),
  perKey: z
    .strictObject({ concurrency: slots.nullable().exactOptional(), rate: rate.nullable().exactOptional() })
    .exactOptional(),
});

/** At most `limit` starts per `perMs`, spread evenly, and at most `burst` at once. */
export interface RateLimit {
  /** Starts per `perMs`. */
  readonly limit: number;
  /** The time to which `limit` refers. */
  readonly perMs: number;
  /** How many may start at once. */
  readonly burst: number;
}
/** A queue as its author defines it. */
export interface QueueSpec {
  /** Runs at once, in all processes. */
  readonly concurrency?: number;
  /** Runs at once in one process. */
  readonly perWorker?: number;
  /** How often runs start. */
  readonly rate?: RateLimit;
  /** Limits of each key. */
  readonly perKey?: { readonly concurrency?: number; readonly rate?: RateLimit };
  readonly counts: CountMode;
}
/** Limits that an operator sets until they are reset; null: no limit. Absent ones keep the definition's. */
export interface QueueChange {
  /** Runs at once, in all processes. */
  readonly concurrency?: number | null;
  /** How often runs start. */
  readonly rate?: RateLimit | null;
  /** Limits of each key. */
  readonly perKey?: { readonly concurrency?: number | null; readonly rate?: RateLimit | null };
}
/** The limits in effect. */
export type QueueLimits = Pick<QueueSpec, "concurrency" | "rate" | "perKey">;

/** The schemas, for callers that decode them. */
export const queueShapes = { rate, spec, change };

export function checkQueueSpec(name: string, given: unknown): asserts given is QueueSpec {
  refuseUnless(name, spec.safeParse(given));
}

export function checkQueueChange(name: string, given: unknown): asserts given is QueueChange {
  refuseUnless(name, change.safeParse(given));
}

function refuseUnless(name: string, parsed: z.ZodSafeParseResult<unknown>): void {
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  const field = issue?.path.join(".") || "queue";
  throw new TapeError("TAPE_BAD_INPUT", `queue ${name}: ${field}: ${issue?.message}`, { field, queue: name });
}

/** The definition with an operator's changes. */
export function effectiveLimits(defined: QueueLimits, override: QueueChange | undefined): QueueLimits {
  const pick = <T>(own: T | undefined, changed: T | null | undefined): T | undefined =>
    changed === undefined ? own : (changed ?? undefined);
  const concurrency = pick(defined.concurrency, override?.concurrency);
  const overall = pick(defined.rate, override?.rate);
  const keyConcurrency = pick(defined.perKey?.concurrency, override?.perKey?.concurrency);
  const keyRate = pick(defined.perKey?.rate, override?.perKey?.rate);
  const perKey = {
    ...(keyConcurrency !== undefined && { concurrency: keyConcurrency }),
    ...(keyRate !== undefined && { rate: keyRate }),
  };
  return {
    ...(concurrency !== undefined && { concurrency }),
    ...(overall !== undefined && { rate: overall }),
    ...(Object.keys(perKey).length > 0 && { perKey }),
  };
}

/** A later change on top of an earlier one. */
export function mergedChange(before: QueueChange | undefined, later: QueueChange): QueueChange {
  const perKey = { ...before?.perKey, ...later.perKey };
  return { ...before, ...later, ...(Object.keys(perKey).length > 0 && { perKey }) };
}

/** A weight in thousandths; undefined: it is not a positive number of at most 1 000. */
export function weightOf(weight: number): number | undefined {
  const scaled = Number.isFinite(weight) ? Math.round(weight * weightUnit) : 0;
  return scaled >= 1 && scaled <= maxWeight ? scaled : undefined;
}

/** Why a run does not start yet. */
export type QueueReason =
  | { readonly why: "delayed"; readonly at: number }
  | { readonly why: "paused"; readonly key?: string; readonly by: string; readonly reason: string }
  | { readonly why: "queue_full"; readonly running: number; readonly limit: number; readonly runs: readonly string[] }
  | { readonly why: "key_full"; readonly running: number; readonly limit: number; readonly runs: readonly string[] }
  | { readonly why: "rate"; readonly key?: string; readonly nextAt: number }
  /** Runs of the same key that come first. `more`: at least this many. */
  | { readonly why: "behind"; readonly runs: number; readonly more: boolean }
  | { readonly why: "unserved"; readonly workflow: string }
  /** Runs that wait for each other's slots: it never starts, unless an operator or a deadline cancels one of them. */
  | { readonly why: "cycle"; readonly steps: readonly CycleStep[] };

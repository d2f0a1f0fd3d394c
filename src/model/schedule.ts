import { z } from "zod";
import { decode, encode } from "../base/codec.ts";
import { type Cron, parseCron } from "../base/cron.ts";
import { defined } from "../base/defined.ts";
import { TapeError } from "./errors.ts";
import { queuedShape } from "./start-shape.ts";

/** What happens to a firing while the last run has not ended: skip it, start it anyway, or wait for the end. */
export const overlapPolicies = ["skip", "allow", "wait"] as const;
/** Which missed firings are caught up on: all, the latest, or none. */
export const catchUpPolicies = ["all", "latest", "none"] as const;

/** A firing within this window is on time, so that "none" tolerates a reactor that polls a little late. */
export const onTimeWindowMs = 60_000;
export const defaultWindowMs = 24 * 3_600_000;
/** Long enough to catch up on a yearly schedule. */
export const maxWindowMs = 366 * 24 * 3_600_000;
/** The latest time that a Date can represent. */
const maxTime = 8.64e15;
const time = z.int().min(0).max(maxTime);

const shape = z.strictObject({
  /** Random, so that a schedule that is deleted and created again differs from the old one. */
  uid: z.string(),
  workflow: z.string(),
  version: z.string().optional(),
  input: z.unknown(),
  labels: z.record(z.string(), z.string()).optional(),
  /** In millionths of the unit. */
  budget: z.record(z.string(), z.number()).optional(),
  /** The queue in which its runs wait. */
  queue: queuedShape.exactOptional(),
  cron: z.string(),
  timeZone: z.string(),
  overlap: z.enum(overlapPolicies),
  catchUp: z.enum(catchUpPolicies),
  /** A firing older than this is never caught up on. */
  windowMs: z.int().min(0).max(maxWindowMs),
  /** The next unhandled firing; the row's next_at only sets the time of the next poll. null: there is none. */
  dueAt: time.nullable(),
  /** The id of the last started run. */
  lastRun: z.string().nullable(),
  /** The last firing that could not start its run, and why. */
  lastError: z.strictObject({ at: time, code: z.string(), message: z.string() }).optional(),
});

/** A schedule as its row stores it: its definition and its state. */
export type SchedulePlan = z.infer<typeof shape>;

export function encodeSchedule(plan: SchedulePlan): string {
  return encode({ v: 1, ...plan });
}

export function decodeSchedule(id: string, spec: string): SchedulePlan {
  const { v, ...rest } = decode(spec) as Record<string, unknown>;
  const parsed = v === 1 ? shape.safeParse(rest) : undefined;
  if (parsed?.success) return parsed.data;
  throw new TapeError("TAPE_RECORD_NEWER", `schedule ${id} was written by a newer Tape`, { id });
}

/** Why this schedule is invalid; undefined: it is valid. */
export function scheduleFault(spec: string, limits: ScheduleLimits): string | undefined {
  let decoded: Record<string, unknown>;
  try {
    decoded = decode(spec) as Record<string, unknown>;
  } catch {
    return "the spec cannot be decoded";
  }
  if (typeof decoded !== "object" || decoded === null || decoded.v !== 1) return "the spec does not have version 1";
  const { v: _v, ...rest } = decoded;
  const parsed = shape.safeParse(rest);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return `${issue?.path.join(".") || "spec"}: ${issue?.message}`;
  }
  return planFault(parsed.data, limits);
}

export type ScheduleLimits = Readonly<Record<"scheduleIntervalMs" | "catchUpFirings", number>>;

/** The same check for a stored schedule: its row may predate the limits or may have been written manually. */
export function planFault(plan: SchedulePlan, limits: ScheduleLimits): string | undefined {
  const { cron: expression, timeZone, catchUp, windowMs } = plan;
  const parsed = parseCron(expression, timeZone);
  if ("fault" in parsed) return parsed.fault;
  const { shortestMs, perDay } = parsed.cron.density();
  const { scheduleIntervalMs, catchUpFirings } = limits;
  if (shortestMs < scheduleIntervalMs) {
    return `"${expression}" fires again after ${shortestMs} ms; the minimum interval is ${scheduleIntervalMs} ms`;
  }
  if (catchUp !== "all") return undefined;
  const firings = Math.min(perDay * Math.ceil(windowMs / dayMs), Math.ceil(windowMs / shortestMs));
  if (firings <= catchUpFirings) return undefined;
  return (
    `"${expression}" has up to ${firings} firings within its catch-up window; ` +
    `"all" catches up on at most ${catchUpFirings}: shorten catchUpWindow, or choose "latest"`
  );
}

const dayMs = 24 * 3_600_000;

/** Parses the cron expression. It cannot fail for a plan that was validated before it was written. */
export function cronOf(plan: Pick<SchedulePlan, "cron" | "timeZone">): Cron {
  const parsed = parseCron(plan.cron, plan.timeZone);
  if ("cron" in parsed) return parsed.cron;
  throw new TapeError("TAPE_BAD_SCHEDULE", parsed.fault, { cron: plan.cron, timeZone: plan.timeZone });
}

/** The id of a firing's run. It is deterministic, so that repeated firings find the same run. */
export function runIdOf(schedule: string, at: number): string {
  return `${schedule}@${new Date(at).toISOString()}`;
}

/** The number of characters that {@link runIdOf} adds. */
export const runIdSuffixLength = "@2026-01-01T00:00:00.000Z".length;

export interface FiringChoice {
  /** The firing to start now; undefined: none is due. */
  readonly at: number | undefined;
  /** The next firing if `at` is undefined; null: there is none. */
  readonly dueAt: number | null;
  /** Firings were skipped because they are too old, or because only the latest is caught up on. */
  readonly missed: boolean;
}

export function pickFiring(plan: SchedulePlan, cron: Cron, now: number): FiringChoice {
  const { dueAt, catchUp, windowMs } = plan;
  if (dueAt === null || dueAt > now) return { at: undefined, dueAt, missed: false };
  const oldest = now - (catchUp === "none" ? onTimeWindowMs : windowMs);
  const first = dueAt >= oldest ? dueAt : (cron.next(oldest - 1) ?? null);
  if (first === null || first > now) return { at: undefined, dueAt: first, missed: true };
  const at = catchUp === "all" ? first : (cron.last(first, now) ?? first);
  return { at, dueAt: at, missed: at !== dueAt };
}

/** The run that a firing starts. */
export function firedRun(schedule: string, plan: SchedulePlan, at: number) {
  const { workflow, version, input, labels, budget, queue } = plan;
  return {
    id: runIdOf(schedule, at),
    workflow,
    input,
    schedule,
    labels: { ...labels, schedule },
    ...defined({ version, budget }),
    ...(queue && { queue: queue.name, key: queue.key, priority: queue.priority, ...defined({ weight: queue.weight }) }),
  };
}

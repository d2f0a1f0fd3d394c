import { z } from "zod";
import { decode, encode } from "../base/codec.ts";
import { type Cron, parseCron } from "../base/cron.ts";
import { defined } from "../base/defined.ts";
import { TapeError } from "./errors.ts";

/** What becomes of a firing while the run of the last one lives: left out, started beside it, or kept until it ends. */
export const overlapPolicies = ["skip", "allow", "wait"] as const;
/** Which of the firings that nobody saw to in time are made up for: every one, the newest, or none. */
export const catchUpPolicies = ["all", "latest", "none"] as const;

/** "none" still has to allow for a reactor that looks a little late: this much is on time. */
export const onTimeWindowMs = 60_000;
export const defaultWindowMs = 24 * 3_600_000;
/** What comes once a year can still be made up for. */
export const maxWindowMs = 366 * 24 * 3_600_000;
/** The last instant that a Date can hold. */
const maxTime = 8.64e15;
const time = z.int().min(0).max(maxTime);

const shape = z.strictObject({
  /** Named at random: a schedule that is deleted and made anew is another one. */
  uid: z.string(),
  workflow: z.string(),
  version: z.string().optional(),
  input: z.unknown(),
  labels: z.record(z.string(), z.string()).optional(),
  /** In millionths of the unit. */
  budget: z.record(z.string(), z.number()).optional(),
  cron: z.string(),
  timeZone: z.string(),
  overlap: z.enum(overlapPolicies),
  catchUp: z.enum(catchUpPolicies),
  /** A firing older than this is never made up for. */
  windowMs: z.int().min(0).max(maxWindowMs),
  /** The next firing that nobody has seen to; the row's next_at says only when to look. null: there is none. */
  dueAt: time.nullable(),
  /** The run that was started last. */
  lastRun: z.string().nullable(),
  /** The last firing that could not start its run, and why. */
  lastError: z.strictObject({ at: time, code: z.string(), message: z.string() }).optional(),
});

/** A schedule as its row holds it: what people decided, and how far it has come. */
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

/** Why a schedule may not be written like this; undefined: it may. */
export function scheduleFault(spec: string, limits: ScheduleLimits): string | undefined {
  let said: Record<string, unknown>;
  try {
    said = decode(spec) as Record<string, unknown>;
  } catch {
    return "the spec cannot be decoded";
  }
  if (typeof said !== "object" || said === null || said.v !== 1) return "the spec is not of version 1";
  const { v: _v, ...rest } = said;
  const parsed = shape.safeParse(rest);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    return `${issue?.path.join(".") || "spec"}: ${issue?.message}`;
  }
  return planFault(parsed.data, limits);
}

export type ScheduleLimits = Readonly<Record<"scheduleIntervalMs" | "catchUpFirings", number>>;

/** The same of one that was read: a row may be older than the limits, or written by hand. */
export function planFault(plan: SchedulePlan, limits: ScheduleLimits): string | undefined {
  const { cron: expression, timeZone, catchUp, windowMs } = plan;
  const parsed = parseCron(expression, timeZone);
  if ("fault" in parsed) return parsed.fault;
  const { shortestMs, perDay } = parsed.cron.density();
  const { scheduleIntervalMs, catchUpFirings } = limits;
  if (shortestMs < scheduleIntervalMs) {
    return `"${expression}" comes ${shortestMs} ms after itself; at least ${scheduleIntervalMs} ms must lie between`;
  }
  if (catchUp !== "all") return undefined;
  const firings = Math.min(perDay * Math.ceil(windowMs / dayMs), Math.ceil(windowMs / shortestMs));
  if (firings <= catchUpFirings) return undefined;
  return (
    `"${expression}" has up to ${firings} firings within its catch-up window; ` +
    `"all" makes up for at most ${catchUpFirings}: shorten catchUpWindow, or choose "latest"`
  );
}

const dayMs = 24 * 3_600_000;

/** Refuses an expression or a time zone that cannot be read; whoever writes a plan has asked before. */
export function cronOf(of: Pick<SchedulePlan, "cron" | "timeZone">): Cron {
  const parsed = parseCron(of.cron, of.timeZone);
  if ("cron" in parsed) return parsed.cron;
  throw new TapeError("TAPE_BAD_SCHEDULE", parsed.fault, { cron: of.cron, timeZone: of.timeZone });
}

/** The id of a firing's run: whoever fires it, however often, it is the same run. */
export function runIdOf(schedule: string, at: number): string {
  return `${schedule}@${new Date(at).toISOString()}`;
}

/** How many characters {@link runIdOf} adds. */
export const runIdSuffixLength = "@2026-01-01T00:00:00.000Z".length;

export interface FiringChoice {
  /** The firing whose turn it is; undefined: none is due. */
  readonly at: number | undefined;
  /** Where `at` is undefined, the next one; null: there will be none. */
  readonly dueAt: number | null;
  /** Firings were passed over, because they are too old or because only the newest is wanted. */
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

/** What a firing starts. */
export function firedRun(schedule: string, plan: SchedulePlan, at: number) {
  const { workflow, version, input, labels, budget } = plan;
  return {
    id: runIdOf(schedule, at),
    workflow,
    input,
    schedule,
    labels: { ...labels, schedule },
    ...defined({ version, budget }),
  };
}

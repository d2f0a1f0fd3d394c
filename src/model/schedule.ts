import { z } from "zod";
import { decode, encode } from "../base/codec.ts";
import { type Cron, parseCron } from "../base/cron.ts";
import { TapeError } from "./errors.ts";

/** What becomes of a firing while the run of the last one lives: left out, started beside it, or kept until it ends. */
export const overlaps = ["skip", "allow", "wait"] as const;
/** Which of the firings that nobody saw to in time are made up for: every one, the newest, or none. */
export const catchUps = ["all", "latest", "none"] as const;

/** "none" still has to allow for a reactor that looks a little late: this much is on time. */
export const onTimeMs = 60_000;
export const defaultWindowMs = 24 * 3_600_000;

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
  overlap: z.enum(overlaps),
  catchUp: z.enum(catchUps),
  /** A firing older than this is never made up for. */
  windowMs: z.number(),
  /** The next firing that nobody has seen to; the row's next_at says only when to look. null: there is none. */
  due: z.number().nullable(),
  /** The run that was started last. */
  last: z.string().nullable(),
  /** The last firing that could not start its run, and why. */
  trouble: z.strictObject({ at: z.number(), code: z.string(), message: z.string() }).optional(),
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
export const runIdExtra = "@2026-01-01T00:00:00.000Z".length;

export interface Picked {
  /** The firing whose turn it is; undefined: none is due. */
  readonly at: number | undefined;
  /** Where `at` is undefined, the next one; null: there will be none. */
  readonly due: number | null;
  /** Firings were passed over, because they are too old or because only the newest is wanted. */
  readonly passedOver: boolean;
}

export function pickFiring(plan: SchedulePlan, cron: Cron, now: number): Picked {
  const { due, catchUp, windowMs } = plan;
  if (due === null || due > now) return { at: undefined, due, passedOver: false };
  const oldest = now - (catchUp === "none" ? onTimeMs : windowMs);
  const first = due >= oldest ? due : (cron.next(oldest - 1) ?? null);
  if (first === null || first > now) return { at: undefined, due: first, passedOver: true };
  const at = catchUp === "all" ? first : (cron.last(first, now) ?? first);
  return { at, due: at, passedOver: at !== due };
}

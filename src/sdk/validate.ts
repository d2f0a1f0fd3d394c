import { type Duration, durationMs, nearestDuration } from "../base/duration.ts";
import { suggest } from "../base/suggest.ts";
import { TapeError } from "../model/errors.ts";
import type { RetryPolicy } from "./effect-types.ts";

/** Checks of an author's definitions, made at the definition, so that a mistake is reported before anything runs. */

/** A name that can be shown and stored. */
export function assertName(what: string, name: unknown): asserts name is string {
  if (typeof name === "string" && name.length > 0) return;
  throw new TapeError("TAPE_BAD_INPUT", `${what} needs a name`, { name });
}

/** Refuses unknown options, because a mistyped one would silently not apply. `hints` explain keys that belong elsewhere. */
export function assertKnownKeys(
  subject: string,
  options: unknown,
  known: readonly string[],
  hints: Readonly<Record<string, string>> = {},
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TapeError("TAPE_BAD_INPUT", `${subject}: the options are not an object, but ${shown(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const near = suggest(key, known);
    const did = near === undefined ? `; its options are ${known.join(", ")}` : `; did you mean ${near}?`;
    const hint = Object.hasOwn(hints, key) ? `; ${hints[key]}` : did;
    throw new TapeError("TAPE_BAD_INPUT", `${subject} has no option ${key}${hint}`, { field: key });
  }
}

export function assertOneOf<T extends string>(subject: string, field: string, value: T, known: readonly T[]): void {
  if (known.includes(value)) return;
  const near = typeof value === "string" ? suggest(value, known) : undefined;
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  const message = `${subject}: ${field} is ${known.join(" or ")}, not ${String(value)}${hint}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

export interface NumberBounds {
  readonly min: number;
  readonly max?: number;
  /** Whether fractions are allowed. */
  readonly fractions?: boolean;
}

/** The number, or `otherwise` if there is none. NaN, text, null and values out of bounds are refused. */
export function numberOf(
  subject: string,
  field: string,
  value: number | undefined,
  otherwise: number,
  { min, max = Number.MAX_SAFE_INTEGER, fractions = false }: NumberBounds,
): number {
  if (value === undefined) return otherwise;
  const fits = fractions ? Number.isFinite(value) : Number.isSafeInteger(value);
  if (fits && value >= min && value <= max) return value;
  const what = fractions ? "a number" : "a whole number";
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} is ${what} ${range}, not ${shown(value)}`, { field });
}

/** The only parser of user-written durations: returns milliseconds, or throws with the probably intended spelling. */
export function durationOrThrow(subject: string, field: string, value: unknown, minMs = 0): number {
  const ms = durationMs(value as Duration);
  if (ms !== undefined && ms >= minMs) return ms;
  const bound = minMs > 0 ? ` of at least ${minMs} ms` : "";
  const near = typeof value === "string" ? nearestDuration(value) : undefined;
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  const message = `${subject}: ${field} is not a duration${bound} such as "30s" or 500 (milliseconds): ${shown(value)}${hint}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

/** Milliseconds, or `otherwise` if there is no duration. */
export function durationOf(
  subject: string,
  field: string,
  value: Duration | undefined,
  otherwise: number,
  minMs = 0,
): number {
  return value === undefined ? otherwise : durationOrThrow(subject, field, value, minMs);
}

/** A function, or nothing. */
export function functionOr(subject: string, field: string, value: unknown): void {
  if (value === undefined || typeof value === "function") return;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} is not a function but ${shown(value)}`, { field });
}

/** Text, or nothing. */
export function textOr(subject: string, field: string, value: unknown): void {
  if (value === undefined || typeof value === "string") return;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} is not text but ${shown(value)}`, { field });
}

/** true, false, or nothing. */
export function booleanOr(subject: string, field: string, value: unknown): void {
  if (value === undefined || typeof value === "boolean") return;
  throw new TapeError("TAPE_BAD_INPUT", `${subject}: ${field} is true or false, not ${shown(value)}`, { field });
}

export interface CheckedRetry {
  readonly attempts: number;
  readonly backoff: { readonly baseMs: number; readonly factor: number; readonly capMs: number };
}

const retryKeys = ["attempts", "base", "factor", "cap"];

/** The retry policy with its defaults; `attempts` applies if the policy does not set it. `more`: further known keys. */
export function retryOf(
  subject: string,
  retry: RetryPolicy | undefined,
  attempts: number,
  more: readonly string[] = [],
): CheckedRetry {
  const { attempts: wanted, base, factor, cap } = retry === undefined ? {} : checkedPolicy(subject, retry, more);
  return {
    attempts: numberOf(subject, "retry.attempts", wanted, attempts, { min: 1 }),
    backoff: {
      baseMs: durationOf(subject, "retry.base", base, 1_000),
      factor: numberOf(subject, "retry.factor", factor, 2, { min: 1, max: 1_000, fractions: true }),
      capMs: durationOf(subject, "retry.cap", cap, 60_000),
    },
  };
}

function checkedPolicy(subject: string, retry: RetryPolicy, more: readonly string[]): RetryPolicy {
  if (typeof retry !== "object" || retry === null) {
    const message = `${subject}: retry must be an object such as { attempts: 3 }, not ${shown(retry)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "retry" });
  }
  assertKnownKeys(`retry of ${subject}`, retry, [...retryKeys, ...more]);
  return retry;
}

/** A wrong value in a message: short, and never the content of an object. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "function" ? "a function" : String(value);
}

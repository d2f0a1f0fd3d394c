import { type Duration, durationMs, nearestDuration } from "../base/duration.ts";
import { suggest } from "../base/suggest.ts";
import { TapeError } from "../model/errors.ts";
import type { RetryPolicy } from "./effect-types.ts";

/** Checks of what authors write, made where it is defined: a mistake is reported before anything can run. */

/** A name that can be shown and stored. */
export function assertName(what: string, name: unknown): asserts name is string {
  if (typeof name === "string" && name.length > 0) return;
  throw new TapeError("TAPE_BAD_INPUT", `${what} needs a name`, { name });
}

/** A mistyped option would silently not apply. `hints` answer for keys that belong elsewhere. */
export function assertKnownKeys(
  whose: string,
  options: unknown,
  known: readonly string[],
  hints: Readonly<Record<string, string>> = {},
): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TapeError("TAPE_BAD_INPUT", `${whose}: the options are not an object, but ${shown(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (known.includes(key)) continue;
    const near = suggest(key, known);
    const did = near === undefined ? `; it knows ${known.join(", ")}` : `; did you mean ${near}?`;
    const hint = Object.hasOwn(hints, key) ? `; ${hints[key]}` : did;
    throw new TapeError("TAPE_BAD_INPUT", `${whose} has no option ${key}${hint}`, { field: key });
  }
}

export function assertOneOf<T extends string>(whose: string, field: string, value: T, known: readonly T[]): void {
  if (known.includes(value)) return;
  const near = typeof value === "string" ? suggest(value, known) : undefined;
  const hint = near === undefined ? "" : `; did you mean ${near}?`;
  const message = `${whose}: ${field} is ${known.join(" or ")}, not ${String(value)}${hint}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

export interface NumberBounds {
  readonly min: number;
  readonly max?: number;
  /** Fractions too. */
  readonly fractions?: boolean;
}

/** The number, or `otherwise` where none is given. NaN, text, null and what is out of bounds are refused. */
export function numberOf(
  whose: string,
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
  throw new TapeError("TAPE_BAD_INPUT", `${whose}: ${field} is ${what} ${range}, not ${shown(value)}`, { field });
}

/** The one parser of durations that people write: milliseconds, or a refusal that shows what was probably meant. */
export function durationOrThrow(whose: string, field: string, value: unknown, minMs = 0): number {
  const ms = durationMs(value as Duration);
  if (ms !== undefined && ms >= minMs) return ms;
  const least = minMs > 0 ? ` of at least ${minMs} ms` : "";
  const near = typeof value === "string" ? nearestDuration(value) : undefined;
  const hint = near === undefined ? "" : `; did you mean "${near}"?`;
  const message = `${whose}: ${field} is not a duration${least} such as "30s" or 500 (milliseconds): ${shown(value)}${hint}`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

/** Milliseconds, or `otherwise` where no duration is given. */
export function durationOf(
  whose: string,
  field: string,
  value: Duration | undefined,
  otherwise: number,
  minMs = 0,
): number {
  return value === undefined ? otherwise : durationOrThrow(whose, field, value, minMs);
}

/** A function, or nothing. */
export function functionOr(whose: string, field: string, value: unknown): void {
  if (value === undefined || typeof value === "function") return;
  throw new TapeError("TAPE_BAD_INPUT", `${whose}: ${field} is not a function but ${shown(value)}`, { field });
}

/** Text, or nothing. */
export function textOr(whose: string, field: string, value: unknown): void {
  if (value === undefined || typeof value === "string") return;
  throw new TapeError("TAPE_BAD_INPUT", `${whose}: ${field} is not text but ${shown(value)}`, { field });
}

/** true, false, or nothing. */
export function booleanOr(whose: string, field: string, value: unknown): void {
  if (value === undefined || typeof value === "boolean") return;
  throw new TapeError("TAPE_BAD_INPUT", `${whose}: ${field} is true or false, not ${shown(value)}`, { field });
}

export interface CheckedRetry {
  readonly attempts: number;
  readonly backoff: { readonly baseMs: number; readonly factor: number; readonly capMs: number };
}

const retryKeys = ["attempts", "base", "factor", "cap"];

/** How often, and how long after each other; `attempts` where the policy does not say. */
export function retryOf(whose: string, retry: RetryPolicy | undefined, attempts: number): CheckedRetry {
  const { attempts: wanted, base, factor, cap } = retry === undefined ? {} : checkedPolicy(whose, retry);
  return {
    attempts: numberOf(whose, "retry.attempts", wanted, attempts, { min: 1 }),
    backoff: {
      baseMs: durationOf(whose, "retry.base", base, 1_000),
      factor: numberOf(whose, "retry.factor", factor, 2, { min: 1, max: 1_000, fractions: true }),
      capMs: durationOf(whose, "retry.cap", cap, 60_000),
    },
  };
}

function checkedPolicy(whose: string, retry: RetryPolicy): RetryPolicy {
  if (typeof retry !== "object" || retry === null) {
    const message = `${whose}: retry is an object such as { attempts: 3 }, not ${shown(retry)}`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "retry" });
  }
  assertKnownKeys(`retry of ${whose}`, retry, retryKeys);
  return retry;
}

/** A wrong value in a message: short, and never what an object holds. */
export function shown(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value.length > 40 ? `${value.slice(0, 40)}…` : value);
  if (typeof value === "object" && value !== null) return Array.isArray(value) ? "a list" : "an object";
  return typeof value === "function" ? "a function" : String(value);
}

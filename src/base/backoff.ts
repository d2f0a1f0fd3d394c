import type { Random } from "./random.ts";

export interface BackoffOptions {
  readonly baseMs: number;
  readonly capMs: number;
  readonly factor?: number;
}

/** Used where the options are not usable numbers: outlasts a burst of errors, and an operator can still wait for it. */
const fallbackMs = 60_000;

/**
 * Exponential back-off with full jitter over the upper half. The delay is never shorter than half its nominal value, so
 * the loser of a race does not return at once, and the jitter keeps processes out of step. Options that make no sense
 * (NaN, negative) give a long delay: without one, a retry loop would spin.
 */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const nominal = Math.min(options.capMs, options.baseMs * (options.factor ?? 2) ** Math.max(0, attempt - 1));
  return (nominal >= 0 ? nominal : fallbackMs) * (0.5 + random.float() / 2);
}

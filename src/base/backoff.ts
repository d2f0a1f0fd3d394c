import type { Random } from "./random.ts";

export interface BackoffOptions {
  readonly baseMs: number;
  readonly capMs: number;
  readonly factor?: number;
}

/** Where the numbers say nothing: longer than any storm, shorter than a coffee. */
const fallbackMs = 60_000;

/**
 * Exponential back-off with full jitter over the upper half: never shorter than half the nominal delay, so a loser of a
 * race does not come straight back, and never in step with its neighbours.
 * Numbers that make no sense (NaN, negative) end in a long pause: a retry loop without one would never rest.
 */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const nominal = Math.min(options.capMs, options.baseMs * (options.factor ?? 2) ** Math.max(0, attempt - 1));
  return (nominal >= 0 ? nominal : fallbackMs) * (0.5 + random.float() / 2);
}

import type { Random } from "./random.ts";

export interface BackoffOptions {
  readonly baseMs: number;
  readonly capMs: number;
  readonly factor?: number;
}

/**
 * Exponential back-off with full jitter over the upper half: never shorter than half the nominal delay, so a loser of a
 * race does not come straight back, and never in step with its neighbours.
 */
export function backoffMs(attempt: number, options: BackoffOptions, random: Random): number {
  const nominal = Math.min(options.capMs, options.baseMs * (options.factor ?? 2) ** Math.max(0, attempt - 1));
  return nominal * (0.5 + random.float() / 2);
}

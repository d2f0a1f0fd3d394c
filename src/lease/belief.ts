import type { Clock } from "../base/clock.ts";

/**
 * What a holder may believe about its own lease, from its own clocks alone.
 *
 *   held     the last renewal succeeded and its trust has not run out
 *   unknown  a renewal failed or is late: keep trying; acting is allowed until the deadline and not a moment longer
 *   lost     the store said so, the deadline has passed, or it was given back: nothing of this term may be done again
 *
 *   held ⇄ unknown ──▶ lost      (lost is final: another acquire is another term)
 */
export type Belief = "held" | "unknown" | "lost";

/** A moment on both clocks. Monotonic time stands still while the machine sleeps, wall time jumps when it is set. */
export interface ClockReading {
  readonly mono: number;
  readonly wall: number;
}

/** Reads both clocks at one moment. */
export const readClocks = (clock: Clock): ClockReading => ({ mono: clock.mono(), wall: clock.wall() });

/** Milliseconds since `moment` by the worse of the two clocks: whoever is unsure must assume that more time has passed. */
export function elapsedSince(moment: ClockReading, clock: Clock): number {
  return Math.max(clock.mono() - moment.mono, clock.wall() - moment.wall, 0);
}

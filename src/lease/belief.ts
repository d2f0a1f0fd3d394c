import type { Clock } from "../base/clock.ts";

/**
 * What a holder may believe about its own lease, from its own clocks alone.
 *
 *   held     the last renewal succeeded and its trust has not expired
 *   unknown  a renewal failed or is late: keep trying; the holder may act until the deadline, and not after it
 *   lost     the store reported it, the deadline has passed, or the lease was released: this term must do nothing more
 *
 *   held ⇄ unknown ──▶ lost      (lost is final: another acquire is another term)
 */
export type Belief = "held" | "unknown" | "lost";

/** A reading of both clocks. Monotonic time stops while the machine sleeps; wall time jumps when it is set. */
export interface ClockReading {
  /** Monotonic milliseconds. */
  readonly mono: number;
  /** Milliseconds since 1970. */
  readonly wall: number;
}

/**
 * Reads both clocks of the machine.
 *
 * @example
 * const { mono, wall } = readClocks(systemClock);
 */
export const readClocks = (clock: Clock): ClockReading => ({ mono: clock.mono(), wall: clock.wall() });

/** Milliseconds since `moment` by the worse of the two clocks: a holder must assume that more time has passed. */
export function elapsedSince(moment: ClockReading, clock: Clock): number {
  return Math.max(clock.mono() - moment.mono, clock.wall() - moment.wall, 0);
}

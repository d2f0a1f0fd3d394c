import type { Clock } from "../base/clock.ts";
import { elapsedSince, type Moment } from "../lease/belief.ts";
import { TapeError } from "../model/errors.ts";
import { NotSent } from "../sdk/outcomes.ts";

/** An attempt that is authorised begins by then, or not at all. Longer than a commit takes in any but the worst hour. */
const beginWithinMs = 10_000;

/** How long after its authorisation an attempt may still send: until it begins, and as long as it may last then. */
export const sendWithin = (timeoutMs: number): number => beginWithinMs + timeoutMs;

/**
 * Whoever was stopped between the authorisation and the call may have been given up meanwhile, though its lease lives:
 * whether the act is absent is judged from the send deadline on. `authorised`: when the record was handed to the store.
 */
export function assertInTime(authorised: Moment, clock: Clock): void {
  if (elapsedSince(authorised, clock) <= beginWithinMs) return;
  const cause = new TapeError("TAPE_LEASE_LOST", "the time to begin had passed");
  throw new NotSent("it was too late to send it", { cause });
}

import type { Clock } from "../../base/clock.ts";
import { type ClockReading, elapsedSince } from "../../lease/belief.ts";
import type { Lease } from "../../lease/lease.ts";
import { TapeError } from "../../model/errors.ts";
import { NotSent } from "../../sdk/outcomes.ts";

type Held = Pick<Lease, "timings">;

const maxStartWindowMs = 10_000;

/**
 * An attempt that is authorised begins by then, or not at all. Longer than a commit takes in any but the worst hour; and
 * no longer than a lease lasts, for no transaction of a store outlasts one: who asks for short leases is not kept waiting.
 */
const startWindowMs = ({ timings }: Held): number => Math.min(maxStartWindowMs, Math.ceil(timings.ttlMs));

/** How long after its authorisation an attempt may still send: until it begins, and as long as it may last then. */
export const sendWindowMs = (lease: Held, timeoutMs: number): number => startWindowMs(lease) + timeoutMs;

/**
 * Whoever was stopped between the authorisation and the call may have been given up meanwhile, though its lease lives:
 * whether the act is absent is judged from the send deadline on. `authorised`: when the record was handed to the store.
 */
export function assertStartWindow(lease: Held, authorised: ClockReading, clock: Clock): void {
  if (elapsedSince(authorised, clock) <= startWindowMs(lease)) return;
  const cause = new TapeError("TAPE_LEASE_LOST", "the time to begin had passed");
  throw new NotSent("it was too late to send it", { cause });
}

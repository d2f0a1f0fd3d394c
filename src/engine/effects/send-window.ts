import type { Clock } from "../../base/clock.ts";
import { type ClockReading, elapsedSince } from "../../lease/belief.ts";
import type { Lease } from "../../lease/lease.ts";
import { TapeError } from "../../model/errors.ts";
import { NotSent } from "../../sdk/outcomes.ts";

type LeaseTimings = Pick<Lease, "timings">;

const maxStartWindowMs = 10_000;

/**
 * Start deadline of an authorised attempt. Ten seconds outlasts any normal commit. It is capped at the lease TTL, which
 * no transaction of a store outlasts, so that short leases do not delay the verdict.
 */
const startWindowMs = ({ timings }: LeaseTimings): number => Math.min(maxStartWindowMs, Math.ceil(timings.ttlMs));

/** How long after its authorisation an attempt may still send: the start window and the effect's time-out. */
export const sendWindowMs = (lease: LeaseTimings, timeoutMs: number): number => startWindowMs(lease) + timeoutMs;

/**
 * A process that stalled between the authorisation and the call must not send any more, even if its lease is valid:
 * after the send window an observation may already have found the effect absent. `authorised`: when the record was sent
 * to the store.
 */
export function assertStartWindow(lease: LeaseTimings, authorised: ClockReading, clock: Clock): void {
  if (elapsedSince(authorised, clock) <= startWindowMs(lease)) return;
  const cause = new TapeError("TAPE_LEASE_LOST", "the start window had passed");
  throw new NotSent("the send window had passed", { cause });
}

import { TapeError } from "../model/errors.ts";

/** The three durations of a lease: heartbeat < trust < TTL. */
export interface Timings {
  /** How long a term lasts without renewal. */
  readonly ttlMs: number;
  /** How often the keeper renews. */
  readonly heartbeatMs: number;
  /** How long, from the sending of the last successful renewal, the holder trusts its lease. */
  readonly trustMs: number;
}

/** 30 s, as the reactors' documented default: a crash costs half a minute, a heartbeat a statement every ten seconds. */
const defaultTtlMs = 30_000;

/** heartbeat = TTL / 3 lets two renewals fail; trust = 5/6 TTL stops the holder well before anybody may take over. */
export function timingsOf(given: Partial<Timings>, transactionBoundMs: number): Timings {
  const ttlMs = given.ttlMs ?? defaultTtlMs;
  const timings = { ttlMs, heartbeatMs: given.heartbeatMs ?? ttlMs / 3, trustMs: given.trustMs ?? (ttlMs * 5) / 6 };
  checkTimings(timings, transactionBoundMs);
  return timings;
}

/** Timings of one lease: the keeper's, changed. A TTL of its own brings its own heartbeat and trust with it. */
export function timingsFor(keeper: Timings, given: Partial<Timings>, transactionBoundMs: number): Timings {
  const { ttlMs = keeper.ttlMs, heartbeatMs, trustMs } = given;
  if (ttlMs !== keeper.ttlMs) return timingsOf(given, transactionBoundMs);
  if (heartbeatMs === undefined && trustMs === undefined) return keeper; // checked when it was made
  return timingsOf({ ...keeper, ...given }, transactionBoundMs);
}

export function checkTimings(timings: Timings, transactionBoundMs: number): void {
  const { ttlMs, heartbeatMs, trustMs } = timings;
  for (const [name, value] of Object.entries(timings)) {
    if (!Number.isFinite(value) || value <= 0) refuse(timings, `${name} must be a positive number of milliseconds`);
  }
  if (heartbeatMs >= trustMs) {
    refuse(
      timings,
      `heartbeat ${heartbeatMs} ms must be shorter than trust ${trustMs} ms: the lease would lapse between renewals`,
    );
  }
  if (trustMs >= ttlMs) {
    refuse(
      timings,
      `trust ${trustMs} ms must be shorter than TTL ${ttlMs} ms: the holder would act after others may take over`,
    );
  }
  if (transactionBoundMs >= ttlMs) {
    refuse(
      timings,
      `TTL ${ttlMs} ms must be longer than the store's transaction bound ${transactionBoundMs} ms: a worker stopped inside a transaction would hold up its successor`,
    );
  }
}

/** A stall shorter than a heartbeat would lose every lease: progress travels with the heartbeat. */
export function checkStall(name: string, maxStallMs: number | undefined, { heartbeatMs }: Timings): void {
  if (maxStallMs === undefined || maxStallMs > heartbeatMs) return;
  const message = `${name}: maxStall ${maxStallMs} ms must be longer than the heartbeat ${heartbeatMs} ms, which carries the progress`;
  throw new TapeError("TAPE_BAD_TIMING", message, { name, maxStallMs, heartbeatMs });
}

function refuse(timings: Timings, message: string): never {
  throw new TapeError("TAPE_BAD_TIMING", message, { ...timings });
}

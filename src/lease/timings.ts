import { TapeError } from "../model/errors.ts";

/** The times of a lease: heartbeat < trust < TTL. */
export interface Timings {
  /** How long a term lasts without renewal. */
  readonly ttlMs: number;
  /** How often the keeper renews. */
  readonly heartbeatMs: number;
  /** How long the holder trusts its lease, counted from when the last successful renewal was sent. */
  readonly trustMs: number;
}

/** 30 s, the documented default of the reactors: a crash costs half a minute, a heartbeat one statement every 10 s. */
const defaultTtlMs = 30_000;

/** heartbeat = TTL / 3 lets two renewals fail; trust = 5/6 TTL stops the holder well before another may take over. */
export function timingsOf(given: Partial<Timings>, transactionBoundMs: number): Timings {
  const ttlMs = given.ttlMs ?? defaultTtlMs;
  const timings = { ttlMs, heartbeatMs: given.heartbeatMs ?? ttlMs / 3, trustMs: given.trustMs ?? (ttlMs * 5) / 6 };
  checkTimings(timings, transactionBoundMs);
  return timings;
}

/** Timings of one lease: the keeper's with changes. A different TTL also changes the defaults of heartbeat and trust. */
export function timingsFor(keeper: Timings, given: Partial<Timings>, transactionBoundMs: number): Timings {
  const { ttlMs = keeper.ttlMs, heartbeatMs, trustMs } = given;
  if (ttlMs !== keeper.ttlMs) return timingsOf(given, transactionBoundMs);
  if (heartbeatMs === undefined && trustMs === undefined) return keeper; // checked when the keeper was created
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
      `TTL ${ttlMs} ms must be longer than the store's transaction bound ${transactionBoundMs} ms: a worker paused inside a transaction would block its successor`,
    );
  }
}

/** A limit shorter than the heartbeat would lose every lease, because the heartbeat carries the progress. */
export function checkStall(name: string, maxStallMs: number | undefined, { heartbeatMs }: Timings): void {
  if (maxStallMs === undefined || maxStallMs > heartbeatMs) return;
  const message = `${name}: maxStall ${maxStallMs} ms must be longer than the heartbeat ${heartbeatMs} ms, which carries the progress`;
  throw new TapeError("TAPE_BAD_TIMING", message, { name, maxStallMs, heartbeatMs });
}

function refuse(timings: Timings, message: string): never {
  throw new TapeError("TAPE_BAD_TIMING", message, { ...timings });
}

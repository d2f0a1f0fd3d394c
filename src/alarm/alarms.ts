/**
 * A service that calls this deployment at a time: a task queue with a schedule time, or a stream with schedules. An
 * alarm only says "check the agenda now"; what is due is in the store.
 */
export interface Alarms {
  /** The furthest time ahead that the service accepts. Something due later gets another alarm on the way. */
  readonly furthestMs: number;
  /**
   * Resolves once the service has stored the alarm. It fires at least once, never early by the service's clock, and is
   * repeated until a sweep has succeeded. An alarm with a name that is still pending is already set.
   */
  set(alarm: Alarm): Promise<void>;
}

/** A request to be called. */
export interface Alarm {
  readonly tenant: string;
  /** From now. */
  readonly inMs: number;
  /** Letters, digits and `-`. The same name is the same alarm, whichever process sets it. */
  readonly name: string;
}

/** What sends a wake-up to the deployment now. A lost one is found by the alarm. */
export interface Waker {
  wake(reactor: string): Promise<void> | void;
}

/**
 * How long before its alarm a write must be over. No write outlives the store's bound after its process has died. The
 * second bound is a margin: the clocks of the process and of the service may differ by that much.
 */
export const minAheadBounds = 2;
/** An alarm is set at most this many bounds ahead: a lost wake-up costs no more. */
export const maxAheadBounds = 4;

/** SQLite has no bound, because its transactions end with the process. */
const minBoundMs = 5_000;

export const boundOf = (transactionBoundMs: number): number => Math.max(minBoundMs, transactionBoundMs);

/**
 * The next alarm between two and four bounds ahead. All processes use the same few moments, and the name is the moment:
 * together they set one alarm per interval, however many write.
 */
export function nextBucket(now: number, boundMs: number): Omit<Alarm, "tenant"> & { readonly at: number } {
  const width = (maxAheadBounds - minAheadBounds) * boundMs;
  const at = Math.ceil((now + minAheadBounds * boundMs) / width) * width;
  return { at, inMs: at - now, name: `b${width}-${at / width}` };
}

/** Moments of alarms for what is due later. Rounded up, so that nothing in the interval is still ahead. */
const dueStepMs = 500;

/** An alarm on the way to something further than the service accepts: the same one for an hour. */
const farStepMs = 3_600_000;

/** The alarm for something that is due in `inMs`; processes that see the same agenda set the same one. */
export function dueAlarm(now: number, inMs: number, furthestMs: number): Omit<Alarm, "tenant"> {
  const at =
    inMs + dueStepMs > furthestMs
      ? Math.floor((now + furthestMs) / farStepMs) * farStepMs
      : Math.ceil((now + inMs) / dueStepMs) * dueStepMs;
  return { inMs: Math.max(0, at - now), name: `d${at}` };
}

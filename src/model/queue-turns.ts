import { type RateLimit, weightUnit } from "./queue.ts";

/** Whose turn it is in a queue, and when. Pure rules, the same for every store. */

/*
 * Rates: the generic cell rate algorithm on store time. `tat`, in microseconds, is the time at which the next start
 * would be exactly on its even schedule. A start may be early by the burst. So any window of `perMs` has at most
 * limit + burst − 1 starts.
 */

const usPerMs = 1_000;

/** A rate as a store keeps it: microseconds between two starts, and how many may start at once. */
export interface Pace {
  readonly intervalUs: number;
  readonly burst: number;
}

/** Rounded up: rounding must not allow one start more. */
export const paceOf = ({ limit, perMs, burst }: RateLimit): Pace => ({
  intervalUs: Math.ceil((perMs * usPerMs) / limit),
  burst,
});

/** A `tat` further ahead than any start can set it comes from a clock that was set back. */
function sane(tat: number, nowUs: number, { intervalUs, burst }: Pace): number {
  return Math.max(nowUs, Math.min(tat, nowUs + burst * intervalUs));
}

/** How many may start now. */
export function rateRoom(tat: number, nowMs: number, pace: Pace | undefined): number {
  if (pace === undefined) return Number.POSITIVE_INFINITY;
  const nowUs = nowMs * usPerMs;
  const { intervalUs, burst } = pace;
  return Math.max(0, Math.floor((nowUs + burst * intervalUs - sane(tat, nowUs, pace)) / intervalUs));
}

/** The `tat` after that many starts now. */
export function rateAfter(tat: number, nowMs: number, pace: Pace | undefined, starts: number): number {
  if (pace === undefined || starts === 0) return tat;
  return sane(tat, nowMs * usPerMs, pace) + starts * pace.intervalUs;
}

/** When the next may start, in milliseconds; undefined: now. */
export function rateNextAt(tat: number, nowMs: number, pace: Pace | undefined): number | undefined {
  if (pace === undefined || rateRoom(tat, nowMs, pace) > 0) return undefined;
  return Math.ceil((sane(tat, nowMs * usPerMs, pace) - (pace.burst - 1) * pace.intervalUs) / usPerMs);
}

/*
 * Fairness: start-time fair queueing. A partition's virtual time grows with each start, less for a larger weight, and
 * the partition with the smallest one is next. One that was empty continues at the queue's virtual time: being idle
 * earns no credit.
 */

/** The virtual time of one start at weight 1. */
const startCost = 1_000_000;

export function virtualTimeAfter(vtime: number, weight: number, starts: number): number {
  return vtime + Math.ceil((starts * startCost * weightUnit) / weight);
}

export interface Contender {
  readonly key: string;
  readonly class: number;
  readonly vtime: number;
  /** When it got its first waiting run. */
  readonly entered: number;
  readonly weight: number;
  /** How many of its runs could start: they wait, and its own limits allow them. */
  readonly ready: number;
}

/** The order in which partitions are served. */
export const byTurn = (a: Contender, b: Contender): number =>
  a.class - b.class || a.vtime - b.vtime || a.entered - b.entered || (a.key < b.key ? -1 : 1);

/**
 * How many runs of each partition start, of `free` in all. A lower class comes entirely before a higher one. Within a
 * class each start goes to the partition with the smallest virtual time.
 */
export function shareOut(contenders: readonly Contender[], free: number): ReadonlyMap<string, number> {
  const shares = new Map<string, number>();
  let left = free;
  for (const group of Map.groupBy([...contenders].sort(byTurn), (one) => one.class).values()) {
    const turns = group.map((one) => ({ ...one, taken: 0 })).filter(({ ready }) => ready > 0);
    for (; left > 0 && turns.length > 0; left--) {
      turns.sort(byTurn);
      const [next] = turns;
      next!.taken++;
      next!.vtime = virtualTimeAfter(next!.vtime, next!.weight, 1);
      shares.set(next!.key, (shares.get(next!.key) ?? 0) + 1);
      if (next!.taken === next!.ready) turns.shift();
    }
  }
  return shares;
}

import { resumedClass } from "./queue.ts";
import {
  type Contender,
  type Pace,
  rateAfter,
  rateNextAt,
  rateRoom,
  shareOut,
  virtualTimeAfter,
} from "./queue-turns.ts";

/** Which waiting runs of a queue get the free slots. Pure, and the same for every store. */

export interface QueueState {
  readonly nowMs: number;
  readonly tat: number;
  readonly vnow: number;
  readonly pace: Pace | undefined;
  readonly keyPace: Pace | undefined;
  /** How many runs of one key may run at once. */
  readonly keyCap: number | undefined;
}

export interface KeyState extends Omit<Contender, "ready"> {
  readonly running: number;
  readonly tat: number;
  /** How many of its first runs could be taken: all of its class, and no one passes another. */
  readonly available: number;
}

/** What becomes of a key. */
export interface KeyAdmission {
  readonly key: string;
  readonly starts: number;
  readonly vtime: number;
  readonly tat: number;
  /** Its rate allows no start before. */
  readonly againAt: number | null;
}

export interface Admission {
  /** Keys with starts, and those that turned out not to be ready. */
  readonly keys: readonly KeyAdmission[];
  readonly starts: number;
  /** Of these, runs that have not run before. */
  readonly firstStarts: number;
  readonly tat: number;
  readonly vnow: number;
}

export function admissionOf(queue: QueueState, keys: readonly KeyState[], free: number): Admission {
  const { nowMs, pace, keyPace, keyCap = Number.POSITIVE_INFINITY } = queue;
  const ready = keys.map((one): Contender => {
    const byRate = one.class === resumedClass ? Number.POSITIVE_INFINITY : rateRoom(one.tat, nowMs, keyPace);
    return { ...one, ready: Math.max(0, Math.min(one.available, keyCap - one.running, byRate)) };
  });
  // One class at a time: behind a run of its class, a key may have one that comes before those of other keys.
  const lowest = Math.min(...ready.filter((one) => one.ready > 0).map((one) => one.class));
  // Runs that continue pay no rate.
  const left = lowest === resumedClass ? free : Math.min(free, rateRoom(queue.tat, nowMs, pace));
  const shares = shareOut(
    ready.filter((one) => one.class === lowest),
    left,
  );
  const starts = sumOf(shares);
  const firstStarts = lowest === resumedClass ? 0 : starts;
  const settled = keys.flatMap((one): KeyAdmission[] => {
    const own = shares.get(one.key) ?? 0;
    const isReady = ready.find(({ key }) => key === one.key)!.ready > 0;
    if (own === 0 && (isReady || one.available === 0)) return [];
    const tat = rateAfter(one.tat, nowMs, keyPace, one.class === resumedClass ? 0 : own);
    const againAt = rateNextAt(tat, nowMs, keyPace) ?? null;
    return [{ key: one.key, starts: own, vtime: virtualTimeAfter(one.vtime, one.weight, own), tat, againAt }];
  });
  const served = keys.filter(({ key }) => settled.some((one) => one.key === key && one.starts > 0));
  // With slots left and all of them taken, nothing waits: the next run to come is level with those served last.
  const all = keys.reduce((sum, { available }) => sum + available, 0);
  const level = starts < free && starts === all ? settled : served;
  return {
    keys: settled,
    starts,
    firstStarts,
    tat: rateAfter(queue.tat, nowMs, pace, firstStarts),
    vnow: Math.max(queue.vnow, ...level.map(({ vtime }) => vtime)),
  };
}

const sumOf = (shares: ReadonlyMap<string, number>): number => [...shares.values()].reduce((sum, n) => sum + n, 0);

/** How many runs of a key to consider: twice its share, because the lists of other keys may be short. */
export function quantumOf(weight: number, weights: number, keys: number, free: number): number {
  return keys === 1 ? free : Math.floor((2 * free * weight) / weights) + 1;
}

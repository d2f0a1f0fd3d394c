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
  // Runs that continue pay no rate.
  const resumed = shareOut(
    ready.filter((one) => one.class === resumedClass),
    free,
  );
  const left = Math.min(free - sumOf(resumed), rateRoom(queue.tat, nowMs, pace));
  const first = shareOut(
    ready.filter((one) => one.class !== resumedClass),
    left,
  );
  const firstStarts = sumOf(first);
  const settled = keys.flatMap((one): KeyAdmission[] => {
    const starts = (resumed.get(one.key) ?? 0) + (first.get(one.key) ?? 0);
    const isReady = ready.find(({ key }) => key === one.key)!.ready > 0;
    if (starts === 0 && (isReady || one.available === 0)) return [];
    const tat = rateAfter(one.tat, nowMs, keyPace, first.get(one.key) ?? 0);
    const againAt = rateNextAt(tat, nowMs, keyPace) ?? null;
    return [{ key: one.key, starts, vtime: virtualTimeAfter(one.vtime, one.weight, starts), tat, againAt }];
  });
  const served = keys.filter(({ key }) => settled.some((one) => one.key === key && one.starts > 0));
  const starts = sumOf(resumed) + firstStarts;
  // With slots left nothing waits: the next run to come, of any key, is level with those that were served last.
  const level = starts < free ? settled : served;
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

import type { PauseOf, Queue, QueueKey, RateLimit } from "../api.ts";
import { formatDuration } from "../format.ts";

/** How the limits and the state of a queue read. */

export const keyText = (key: string): string => (key === "" ? "(no key)" : key);

/** "3 of 50", or "3" without a limit. */
export const slotsText = (running: number, limit: number | undefined): string =>
  limit === undefined ? String(running) : `${running} of ${limit}`;

/** "600 per 1 min, 20 at once". */
export const rateText = ({ limit, perMs, burst }: RateLimit): string =>
  `${limit} per ${formatDuration(perMs)}${burst === 1 ? "" : `, ${burst} at once`}`;

export const pauseText = ({ by, reason }: Pick<PauseOf, "by" | "reason">): string => `paused by ${by}: ${reason}`;

export const isFull = ({ running, limits: { concurrency } }: Queue): boolean =>
  concurrency !== undefined && running >= concurrency;

/** Why the next run of a queue does not start; empty: nothing that the queue knows. */
export function queueState(queue: Queue, now: number): string {
  if (queue.paused !== undefined) return pauseText(queue.paused);
  if (queue.waiting === 0) return "";
  return isFull(queue) ? "full" : rateState(queue.nextAt, now);
}

export function keyState({ paused, waiting, ready, nextAt }: QueueKey, now: number): string {
  if (paused !== undefined) return pauseText(paused);
  const rate = rateState(nextAt, now);
  return rate === "" && waiting > 0 && !ready ? "full" : rate;
}

const rateState = (nextAt: number | undefined, now: number): string =>
  nextAt !== undefined && nextAt > now ? `rate: next in ${formatDuration(nextAt - now)}` : "";

import { type BackoffOptions, backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { defined } from "../base/defined.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { retryBackoff } from "../engine/item/deps.ts";
import { type LeaseKeeper, takeoverBackoff } from "../lease/keeper.ts";
import type { Fence } from "../model/fence.ts";
import type { Reactor, ReactorCounts } from "./reactor.ts";

/** What a custom reactor receives in one call. */
export interface ReactorContext {
  /** The name of the reactor. */
  readonly name: string;
  /** Maximum number of items to work on in this call. */
  readonly limit: number;
  /** Aborts when the lease is lost, and when the process stops. */
  readonly abortSignal: AbortSignal;
  /** For guards: proves that a write belongs to this term. */
  readonly fence: Fence;
  readonly log: Log;
  /** Reports progress. A handler with a `max_stall_s` that reports none for longer loses its lease. */
  progress(note?: string): void;
}

/** How much was done: nothing, a number of items, or counts. */
export type ReactorResult = undefined | number | Partial<ReactorCounts>;

/**
 * One idempotent pass over the journal. One replica at a time calls it repeatedly. An error that it throws is logged,
 * and the call is retried after a backoff.
 *
 * @example
 * export const reapOnce: ReactorHandler<Tape> = async (app, { limit }) =>
 *   (await app.obligations.list({ status: "STUCK", minAge: "24h" })).slice(0, limit).length;
 */
export type ReactorHandler<App> = (
  app: App,
  context: ReactorContext,
) => ReactorResult | Promise<ReactorResult> | Promise<void>;

export interface CustomOptions<App> {
  readonly name: string;
  readonly handler: ReactorHandler<App>;
  readonly app: App;
  readonly keeper: LeaseKeeper;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Interval between calls; absent: at every poll of the loop, which suits a replacement of a built-in reactor. */
  readonly intervalMs?: number;
  /** Whether a call is due before its interval has passed. */
  readonly isRequested?: () => boolean;
  /** A call that renews its lease without progress for longer than this loses it to another replica. */
  readonly maxStallMs?: number;
  readonly backoff?: BackoffOptions;
  /** Pauses while another replica runs it. Default 1–10 s. */
  readonly takeover?: BackoffOptions;
  /** Aborted when the process stops. */
  readonly stopping?: AbortSignal;
}

const zeroCounts: ReactorCounts = { found: 0, done: 0, failed: 0, lagMs: 0 };

/** A custom reactor on the same skeleton: acquire its lease, work, heartbeat, release, also after a failure. */
export function customReactor<App>(options: CustomOptions<App>): Reactor {
  const { name, handler, app, keeper, clock, random, log, intervalMs, maxStallMs, stopping } = options;
  const { backoff = retryBackoff, takeover = takeoverBackoff } = options;
  let dueAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  let lostRaces = 0;
  let restUntil = Number.NEGATIVE_INFINITY;
  return {
    name,
    dueInMs: () => Math.max(dueAt, restUntil) - clock.mono(),
    async runOnce(limit) {
      if (clock.mono() < dueAt && options.isRequested?.() !== true) return zeroCounts;
      const lease = await keeper.acquireOrSteal(`reactor ${name}`, { reactor: name, ...defined({ maxStallMs }) });
      if (lease === undefined) {
        restUntil = clock.mono() + backoffMs(++lostRaces, takeover, random); // another replica runs it
        return zeroCounts;
      }
      lostRaces = 0;
      const aborts = stopping === undefined ? [lease.abortSignal] : [lease.abortSignal, stopping];
      const abortSignal = AbortSignal.any(aborts);
      try {
        const progress = (note?: string): void => lease.progress(note);
        const result = await handler(app, { name, limit, abortSignal, fence: lease.fence, log, progress });
        failures = 0;
        if (intervalMs !== undefined) dueAt = clock.mono() + intervalMs;
        return countsOf(result);
      } catch (error) {
        const pauseMs = backoffMs(++failures, backoff, random);
        dueAt = clock.mono() + Math.min(intervalMs ?? pauseMs, pauseMs);
        throw error;
      } finally {
        await lease.release();
      }
    },
  };
}

function countsOf(result: unknown): ReactorCounts {
  if (typeof result === "number") return { ...zeroCounts, found: result, done: result };
  if (typeof result !== "object" || result === null) return zeroCounts;
  const { done = 0, failed = 0, lagMs = 0, found = done + failed } = result as Partial<ReactorCounts>;
  return { found, done, failed, lagMs };
}

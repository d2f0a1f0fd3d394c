import { type BackoffOptions, backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import { retryBackoff } from "../engine/item/deps.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import type { Fence } from "../model/fence.ts";
import type { Reactor, ReactorCounts } from "./reactor.ts";

/** What a reactor of your own is told in one call. */
export interface ReactorContext {
  readonly name: string;
  /** Items to work on in this call, at most. */
  readonly limit: number;
  /** Aborts when the lease is lost, and when the process is asked to stop. */
  readonly abortSignal: AbortSignal;
  /** For guards: what proves that a write is of this term. */
  readonly fence: Fence;
  readonly log: Log;
}

/** How much was done: nothing, a number of items, or counts. */
export type ReactorResult = undefined | number | Partial<ReactorCounts>;

/**
 * A small idempotent loop over the journal. It is called again and again, by one replica at a time; what it throws is
 * logged and tried again after a back-off.
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
  /** How often it is called; absent: whenever the loop looks, which is what a replacement of a built-in one wants. */
  readonly intervalMs?: number;
  readonly backoff?: BackoffOptions;
  /** Aborted when the process is asked to stop. */
  readonly stopping?: AbortSignal;
}

const zeroCounts: ReactorCounts = { found: 0, done: 0, failed: 0, lagMs: 0 };

/** A reactor of the user's own on the same skeleton: acquire its lease, work, heartbeat, release, also on failure. */
export function customReactor<App>(options: CustomOptions<App>): Reactor {
  const {
    name,
    handler,
    app,
    keeper,
    clock,
    random,
    log,
    intervalMs: everyMs,
    backoff = retryBackoff,
    stopping,
  } = options;
  let dueAt = Number.NEGATIVE_INFINITY;
  let failures = 0;
  return {
    name,
    async runOnce(limit) {
      if (clock.mono() < dueAt) return zeroCounts;
      const lease = await keeper.acquireOrSteal(`reactor ${name}`, { reactor: name });
      if (lease === undefined) return zeroCounts; // another replica is at it
      const aborts = stopping === undefined ? [lease.abortSignal] : [lease.abortSignal, stopping];
      const abortSignal = AbortSignal.any(aborts);
      try {
        const answer = await handler(app, { name, limit, abortSignal, fence: lease.fence, log });
        failures = 0;
        if (everyMs !== undefined) dueAt = clock.mono() + everyMs;
        return countsOf(answer);
      } catch (error) {
        const pauseMs = backoffMs(++failures, backoff, random);
        dueAt = clock.mono() + Math.min(everyMs ?? pauseMs, pauseMs);
        throw error;
      } finally {
        await lease.release();
      }
    },
  };
}

function countsOf(answer: unknown): ReactorCounts {
  if (typeof answer === "number") return { ...zeroCounts, found: answer, done: answer };
  if (typeof answer !== "object" || answer === null) return zeroCounts;
  const { done = 0, failed = 0, lagMs = 0, found = done + failed } = answer as Partial<ReactorCounts>;
  return { found, done, failed, lagMs };
}

import { type BackoffOptions, backoffMs } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Handoff } from "../engine/give-back.ts";
import type { LeaseKeeper } from "../lease/keeper.ts";
import type { Runner } from "../sdk/workflow.ts";
import type { Store } from "../store/contract.ts";

/** What every reactor works with. */
export interface ReactorDeps {
  readonly store: Store;
  readonly runner: Runner;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How to go on with work that went wrong; absent: {@link retryBackoff}, for ever. */
  readonly retry?: RetryOptions;
}

export interface RetryOptions {
  readonly backoff?: BackoffOptions;
  /** After so many terms in a row that came to nothing, an item is parked for an hour and reported. */
  readonly maxAttempts?: number;
}

export interface ReactorCounts {
  readonly found: number;
  readonly done: number;
  /** Given back to be looked at again, or lost to somebody else. */
  readonly failed: number;
  /** How long the oldest of them had been due when it was found. */
  readonly lagMs: number;
  /** What nobody here can do: left, or given back, for somebody who can. */
  readonly unserved?: number;
}

/** One look: what was found is being worked on, and `done` tells when all of it is over. */
export interface ReactorRound {
  readonly found: number;
  readonly done: Promise<ReactorCounts>;
}

/** One item is over; whoever is wanted next may be worth waking then. `waited`: others of its callee had no room until now. */
export type OnItemDone = (next?: Handoff, waited?: boolean) => void;

/** A small idempotent loop over the store: find, acquire, work, write under the token, give back. */
export interface Reactor {
  readonly name: string;
  /** What it works on is on the store's agenda: it is told when there is something, and need not look by itself. */
  readonly onAgenda?: boolean;
  /** So many at a time, where nothing else is said: what is cheap is looked for in larger portions. */
  readonly batch?: number;
  /** One look for at most `limit` items; resolves when all that was found has been worked on. */
  runOnce(limit: number): Promise<ReactorCounts>;
  /** The same without waiting for the work: a slow item must not keep the loop from finding others. */
  poll?(limit: number, freed: OnItemDone, perCallee?: number): Promise<ReactorRound>;
  /** How many more it can take now; absent: the loop counts. */
  capacity?(): number;
}

/** Jittered, for work that went wrong or that nobody here can do: soon at first, once a minute at last. */
export const retryBackoff = { baseMs: 1_000, capMs: 60_000 };

/** Neither for ever nor in anybody's way: somebody has been told, and an hour later it may have been put right. */
const parkedMs = 3_600_000;

/** How long to leave an item alone after `attempt` tries in a row that came to nothing. */
export function retryDelayMs(
  deps: Pick<ReactorDeps, "retry" | "random" | "log">,
  attempt: number,
  about: Readonly<Record<string, unknown>>,
): number {
  const { retry, random, log } = deps;
  if (retry?.maxAttempts !== undefined && attempt >= retry.maxAttempts) {
    log("error", "reactor.item_parked", { ...about, attempt, forMs: parkedMs });
    return parkedMs;
  }
  return Math.ceil(backoffMs(attempt, retry?.backoff ?? retryBackoff, random));
}

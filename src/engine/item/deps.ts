import { type BackoffOptions, backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { LeaseKeeper } from "../../lease/keeper.ts";
import type { Runner } from "../../sdk/workflow.ts";
import type { Store } from "../../store/contract/store.ts";

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

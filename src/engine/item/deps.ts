import { type BackoffOptions, backoffMs } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { LeaseKeeper } from "../../lease/keeper.ts";
import type { Runner } from "../../sdk/workflow.ts";
import type { Store } from "../../store/contract/store.ts";

/** The collaborators of every reactor. */
export interface ReactorDeps {
  readonly store: Store;
  readonly runner: Runner;
  readonly keeper: LeaseKeeper;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** How failed work is retried; absent: {@link retryBackoff}, without a limit. */
  readonly retry?: RetryOptions;
}

export interface RetryOptions {
  readonly backoff?: BackoffOptions;
  /** After this many terms in a row without a result, an item is parked for an hour and reported. */
  readonly maxAttempts?: number;
}

/** Jittered, for work that failed or that this process does not serve: from a second to a minute. */
export const retryBackoff = { baseMs: 1_000, capMs: 60_000 };

/** The item has been reported; in an hour the cause may be fixed, and until then it delays no other work. */
const parkedMs = 3_600_000;

/** How long an item is parked after `attempt` terms in a row without a result. */
export function retryDelayMs(
  deps: Pick<ReactorDeps, "retry" | "random" | "log">,
  attempt: number,
  about: Readonly<Record<string, unknown>>,
): number {
  const { retry, random, log } = deps;
  if (retry?.maxAttempts !== undefined && attempt >= retry.maxAttempts) {
    log("error", "reactor.item_parked", { ...about, attempt, delayMs: parkedMs });
    return parkedMs;
  }
  return Math.ceil(backoffMs(attempt, retry?.backoff ?? retryBackoff, random));
}

import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Store } from "../store/contract/store.ts";

/** What a fan-out works with. */
export interface TermDeps {
  readonly store: Store;
  readonly tenant: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}

import type { Handoff } from "../lease/release-journal.ts";

/** What one call of a reactor found and did. */
export interface ReactorCounts {
  /** Items that were due. */
  readonly found: number;
  /** Items that were worked on. */
  readonly done: number;
  /** Items released for a retry, or lost to another holder. */
  readonly failed: number;
  /** How long the oldest item had been due when it was found. */
  readonly lagMs: number;
  /** Items that this process cannot do: left or released for one that can. */
  readonly unserved?: number;
}

/** One poll. The found items are in progress; `done` resolves when all of them are finished. */
export interface ReactorRound {
  readonly found: number;
  /** Whether another poll may find work at once, and nothing else can have become due; absent: if this one found any. */
  readonly more?: boolean;
  readonly done: Promise<ReactorCounts>;
}

/**
 * Called when one item is finished. `next`: the reactor to wake for its next step. `waited`: other items of its callee
 * had no capacity until now.
 */
export type OnItemDone = (next?: Handoff, waited?: boolean) => void;

/** A small idempotent loop over the store: find, acquire, work, write under the token, release. */
export interface Reactor {
  readonly name: string;
  /** Its work is on the store's agenda: the probe wakes it, and it does not poll on its own. */
  readonly onAgenda?: boolean;
  /** Default batch size. Cheap work is claimed in larger batches. */
  readonly batch?: number;
  /** Polls once for at most `limit` items; resolves when all found items have been worked on. */
  runOnce(limit: number): Promise<ReactorCounts>;
  /**
   * The same without waiting for the work, so that a slow item does not delay the next poll. `onlyWaited`: nothing has
   * happened since the last poll but an item that was done with `waited`.
   */
  poll?(limit: number, onItemDone: OnItemDone, perCallee?: number, onlyWaited?: boolean): Promise<ReactorRound>;
  /** Milliseconds until its next call can do something: the loop pauses exactly that long. 0 or less: unknown. */
  dueInMs?(): number;
  /** How many more items it can take now; absent: the loop counts. */
  capacity?(): number;
}

import type { Handoff } from "../lease/release-journal.ts";

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

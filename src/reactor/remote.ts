import type { Clock } from "../base/clock.ts";
import type { Store } from "../store/contract/store.ts";
import type { Reactor, ReactorCounts } from "./reactor.ts";

/** Sends wake-ups to handlers. It may lose, double or delay them. */
export interface Waker {
  /** How logs name it. */
  readonly label: string;
  /** Wakes a reactor with that many requests. Resolves once they are on their way. */
  wake(reactor: string, requests: number): Promise<void>;
  /** Releases connections. */
  close?(): Promise<void>;
}

export interface RemoteOptions {
  readonly name: string;
  readonly waker: Waker;
  /** Items that one request is expected to claim. */
  readonly batch: number;
  readonly store: Pick<Store, "read">;
  readonly tenant: string;
  readonly clock: Clock;
}

/** More due items than this change nothing: the number of requests is bounded, too. */
const maxDue = 1_000;
/** Requests that one reactor gets in a second. */
const maxPerSecond = 10;
/** A request may still be on its way when the work is counted again, so the first repetition comes soon. */
const firstPauseMs = 100;
const maxPauseMs = 60_000;

/**
 * Stands for a reactor that runs elsewhere, behind a push handler: where work is due, it sends wake-ups. It follows what
 * is due, not events, so a lost wake-up is repeated while the work stays due: soon, and then ever less often.
 */
export function remoteReactor({ name, waker, batch, store, tenant, clock }: RemoteOptions): Reactor {
  let lastDue = 0;
  let pauseMs = 0;
  let nextAt = Number.NEGATIVE_INFINITY;
  /** When the requests of the last second were sent. */
  let sent: number[] = [];

  const runOnce = async (): Promise<ReactorCounts> => {
    const due = await store.read.due(name, maxDue, tenant);
    const found = { found: due, done: 0, failed: 0, lagMs: 0 };
    const now = clock.mono();
    const grown = due > lastDue;
    lastDue = due;
    if (due === 0) {
      pauseMs = 0;
      return found;
    }
    sent = sent.filter((at) => at > now - 1_000);
    const requests = Math.min(maxPerSecond - sent.length, Math.ceil(due / batch));
    const isEarly = now < nextAt && !grown && pauseMs > 0;
    if (isEarly || requests === 0) return found;
    pauseMs = grown || pauseMs === 0 ? firstPauseMs : Math.min(maxPauseMs, 2 * pauseMs);
    nextAt = now + pauseMs;
    sent.push(...Array.from({ length: requests }, () => now));
    await waker.wake(name, requests);
    return found;
  };

  // The loop polls a reactor with `done` items again at once. These are done elsewhere, so the count stays zero.
  return { name, onAgenda: true, runOnce, dueInMs: () => (lastDue === 0 ? 0 : Math.max(1, nextAt - clock.mono())) };
}

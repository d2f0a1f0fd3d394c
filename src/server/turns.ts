import type { Clock } from "../base/clock.ts";

/** Tenants take turns for this long after calls of different tenants. */
const sharedMs = 100;
/** Calls start at once for this long in one turn of the event loop; later ones wait for the next turn. */
const turnMs = 1;
/** A tenant that used the loop for some time pauses for this multiple of it. */
const pauseFactor = 3;
/** A longer time was caused by the machine, not by the call. */
const maxChargeMs = 50;
/** Approximate cost of one batch item in the store. Its measured time says nothing, because it may have waited. */
const itemMs = 0.08;
/** Use without a pause: a tenant that calls now and then never waits for itself. */
const freeMs = 4;
/** Items of one call per turn. */
const itemsOfTurn = 32;
/** Rows of a page, and of a response, per turn. */
export const rowsOfTurn = 64;

interface TenantQueue {
  readonly tenant: string;
  readonly waiting: (() => void)[];
  /** End of its pause. */
  pausedUntil: number;
}

/**
 * One event loop serves all tenants. While a single tenant calls, its calls start as they arrive. While several call,
 * they take turns: a turn starts one call, and a tenant that has used the loop for a while pauses before its next turn.
 * However many calls one tenant has queued, another tenant's next call waits for at most one of them, and seldom for
 * that.
 *
 *   alone ──call of another tenant──▶ shared ──100 ms of one tenant's calls only──▶ alone
 */
export class Turns {
  readonly #clock: Clock;
  /** Tenants that wait or pause, the next in turn first. */
  readonly #queues = new Map<string, TenantQueue>();
  #latest: string | undefined;
  #mixedAt = Number.NEGATIVE_INFINITY;
  /** The tenant whose call started last in this turn of the loop, and when. The time since then is charged to it. */
  #running: TenantQueue | undefined;
  #runningSince = 0;
  #turnStartedAt = 0;
  #waiting = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether several tenants called recently. */
  get shared(): boolean {
    return this.#clock.mono() - this.#mixedAt < sharedMs;
  }

  /** Resolves when the tenant's next call may start; undefined: at once. */
  next(tenant: string): Promise<void> | undefined {
    const now = this.#clock.mono();
    if (tenant !== this.#latest) {
      if (this.#latest !== undefined) this.#mixedAt = now;
      this.#latest = tenant;
    }
    if (now - this.#mixedAt >= sharedMs) return undefined;
    const queue = this.#queueOf(tenant);
    if (queue.waiting.length === 0 && queue.pausedUntil <= now && this.#mayStart(now)) {
      this.#start(queue, now);
      return undefined;
    }
    return new Promise((resolve) => {
      queue.waiting.push(resolve);
      this.#waiting++;
      if (this.#running === undefined) this.#plan(now);
    });
  }

  /** The number of rows that a page may have: all requested ones, or those of one turn. */
  rows(requested: number | undefined): number | undefined {
    return this.shared ? Math.min(requested ?? rowsOfTurn, rowsOfTurn) : requested;
  }

  /**
   * Works on all items at once or, while other tenants call too, on one slice per turn. The first turn is taken
   * already.
   */
  async each<Item, Result>(
    tenant: string,
    items: readonly Item[],
    work: (slice: readonly Item[]) => Promise<readonly Result[]>,
  ): Promise<readonly Result[]> {
    const results: Result[] = [];
    for (let done = 0; done < items.length || done === 0; ) {
      if (done > 0) await this.next(tenant);
      const { shared } = this;
      const slice = shared || done > 0 ? items.slice(done, done + itemsOfTurn) : items;
      if (shared) this.#charge(this.#queueOf(tenant), slice.length * itemMs, this.#clock.mono());
      const made = await work(slice);
      if (slice.length === items.length) return made;
      results.push(...made);
      done += slice.length;
    }
    return results;
  }

  #mayStart(now: number): boolean {
    return this.#running === undefined || now - this.#turnStartedAt < turnMs;
  }

  #start(queue: TenantQueue, now: number): void {
    if (this.#running === undefined) {
      this.#turnStartedAt = now;
      this.#clock.immediate(() => this.#turn());
    } else this.#charge(this.#running, now - this.#runningSince, now);
    this.#running = queue;
    this.#runningSince = now;
  }

  #charge(queue: TenantQueue, ms: number, now: number): void {
    const from = Math.max(queue.pausedUntil, now - freeMs * pauseFactor);
    queue.pausedUntil = from + Math.min(ms, maxChargeMs) * pauseFactor;
  }

  /** The loop has turned: calls of the last turn have ended, or wait for the store. */
  #turn(): void {
    const now = this.#clock.mono();
    if (this.#running !== undefined) this.#charge(this.#running, now - this.#runningSince, now);
    this.#running = undefined;
    this.#plan(now);
  }

  /** Starts the next call in turn, or sets a timer for the end of the shortest pause. */
  #plan(now: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const alone = now - this.#mixedAt >= sharedMs;
    let wakeAt = this.#mixedAt + sharedMs;
    for (const queue of this.#queues.values()) {
      if (queue.waiting.length === 0) {
        if (queue.pausedUntil <= now - freeMs * pauseFactor) this.#queues.delete(queue.tenant);
      } else if (alone || queue.pausedUntil <= now) {
        this.#queues.delete(queue.tenant);
        this.#queues.set(queue.tenant, queue);
        this.#waiting--;
        this.#start(queue, now);
        queue.waiting.shift()!();
        return;
      } else wakeAt = Math.min(wakeAt, queue.pausedUntil);
    }
    if (this.#waiting > 0) this.#cancelTimer = this.#clock.after(wakeAt - now, () => this.#plan(this.#clock.mono()));
  }

  #queueOf(tenant: string): TenantQueue {
    let queue = this.#queues.get(tenant);
    if (queue === undefined) {
      queue = { tenant, waiting: [], pausedUntil: Number.NEGATIVE_INFINITY };
      this.#queues.set(tenant, queue);
    }
    return queue;
  }
}

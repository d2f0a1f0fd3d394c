import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";

export interface SlotsOptions {
  readonly clock: Clock;
  /** How many there are. */
  readonly slots: number;
  /** How many may wait for one; whoever comes then is refused at once. */
  readonly waiting: number;
  /** How long one may wait. */
  readonly waitMs: number;
}

interface Waiter {
  readonly until: number;
  readonly granted: () => void;
  readonly refused: (error: Error) => void;
  next?: Waiter;
}

/**
 * So many at once; the others wait in line, first come first served. The line has a bound, and joining and leaving it
 * costs the same however long it is: the driver's own queue has none, and takes a quarter of a million waiters apart in
 * quadratic time, with the event loop.
 */
export class Slots {
  readonly #options: SlotsOptions;
  #free: number;
  /** Linked in order of arrival, and so of `until`: each may wait equally long, and whoever leaves is the first. */
  #first: Waiter | undefined;
  #last: Waiter | undefined;
  #waiting = 0;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#free = options.slots;
  }

  /** How many wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Takes a slot, if one is free at this moment. */
  takeFree(): boolean {
    if (this.#free === 0 || this.#closed) return false;
    this.#free--;
    return true;
  }

  /**
   * Resolves with a slot, which has to be given back. Throws TAPE_OVERLOADED where too many wait already; not to one who
   * is entitled: who had a slot, lost its connection, and must find out what happened.
   */
  async take(entitled = false): Promise<void> {
    const { clock, waiting, waitMs } = this.#options;
    if (this.#closed) throw closedError();
    if (this.takeFree()) return;
    if (this.#waiting >= waiting && !entitled) {
      const message = `${this.#waiting} statements wait for a connection`;
      throw new TapeError("TAPE_OVERLOADED", message, { limit: "pendingItems" });
    }
    await new Promise<void>((granted, refused) => {
      const waiter: Waiter = { until: clock.mono() + waitMs, granted, refused };
      if (this.#last === undefined) this.#first = waiter;
      else this.#last.next = waiter;
      this.#last = waiter;
      this.#waiting++;
      this.#watch();
    });
  }

  give(): void {
    if (this.#first === undefined) this.#free++;
    else this.#leave(this.#first).granted();
  }

  /** Refuses those who wait. */
  close(): void {
    this.#closed = true;
    this.#cancel?.();
    while (this.#first !== undefined) this.#leave(this.#first).refused(closedError());
  }

  #leave(first: Waiter): Waiter {
    this.#first = first.next;
    if (this.#first === undefined) this.#last = undefined;
    this.#waiting--;
    return first;
  }

  /** One timer, for the first in line. */
  #watch(): void {
    if (this.#cancel !== undefined) return;
    const { clock } = this.#options;
    if (this.#first === undefined) return;
    this.#cancel = clock.after(Math.max(0, this.#first.until - clock.mono()), () => {
      this.#cancel = undefined;
      this.#expire();
      this.#watch();
    });
  }

  #expire(): void {
    const { clock, waitMs } = this.#options;
    const now = clock.mono();
    while (this.#first !== undefined && this.#first.until <= now) {
      this.#leave(this.#first).refused(new Error(`no connection was free within ${waitMs} ms`));
    }
  }
}

const closedError = (): TapeError => new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");

import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import { type Queued, TurnQueue } from "../turn-queue.ts";

export interface SlotsOptions {
  readonly clock: Clock;
  /** How many there are. */
  readonly slots: number;
  /** How many may wait for one; the next one is refused at once, unless its tenant has few that wait. */
  readonly waiting: number;
  /** How long one may wait. */
  readonly waitMs: number;
}

interface Waiter extends Queued {
  readonly until: number;
  readonly granted: () => void;
  readonly refused: (error: Error) => void;
  /** Its neighbours in order of arrival. */
  older: Waiter | undefined;
  newer: Waiter | undefined;
}

/**
 * So many at once; the others wait, each tenant's in order of arrival, the tenants in turn. The line has a bound, and
 * joining and leaving it costs the same however long it is: the driver's own queue has none, and takes a quarter of a
 * million waiters apart in quadratic time, with the event loop.
 */
export class Slots {
  readonly #options: SlotsOptions;
  #free: number;
  readonly #queue: TurnQueue<Waiter>;
  /** In order of arrival, and so of `until`: all may wait equally long. The oldest of all is the first of its tenant. */
  #oldest: Waiter | undefined;
  #newest: Waiter | undefined;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#free = options.slots;
    this.#queue = new TurnQueue({ pendingItems: options.waiting, pendingBytes: Number.POSITIVE_INFINITY });
  }

  /** How many wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Takes a slot, if one is free at this moment. */
  takeFree(): boolean {
    if (this.#free === 0 || this.#closed) return false;
    this.#free--;
    return true;
  }

  /**
   * Resolves with a slot, which has to be given back. `tenant`: in whose turn; absent: in one of the store's own. Throws
   * TAPE_OVERLOADED where too many wait already; not to one that is entitled: it had a slot, lost its connection, and
   * must find out what happened.
   */
  async take(tenant: string | undefined, entitled = false): Promise<void> {
    const { clock, waitMs } = this.#options;
    if (this.#closed) throw closedError();
    if (this.takeFree()) return;
    if (!entitled && !this.#queue.hasRoom(tenant, 0)) {
      const message = `${this.#queue.length} statements wait for a connection`;
      throw new TapeError("TAPE_OVERLOADED", message, { limit: "pendingItems" });
    }
    await new Promise<void>((granted, refused) => {
      const older = this.#newest;
      const until = clock.mono() + waitMs;
      const waiter: Waiter = { tenant, bytes: 0, writes: 1, until, granted, refused, older, newer: undefined };
      if (older === undefined) this.#oldest = waiter;
      else older.newer = waiter;
      this.#newest = waiter;
      this.#queue.push(waiter);
      this.#watch();
    });
  }

  give(): void {
    const next = this.#queue.shift();
    if (next === undefined) this.#free++;
    else this.#leave(next).granted();
  }

  /** Refuses those that wait. */
  close(): void {
    this.#closed = true;
    this.#cancel?.();
    for (const waiter of this.#queue.drain()) this.#leave(waiter).refused(closedError());
  }

  #leave(waiter: Waiter): Waiter {
    const { older, newer } = waiter;
    if (older === undefined) this.#oldest = newer;
    else older.newer = newer;
    if (newer === undefined) this.#newest = older;
    else newer.older = older;
    return waiter;
  }

  /** One timer, for the oldest. */
  #watch(): void {
    if (this.#cancel !== undefined) return;
    const { clock } = this.#options;
    if (this.#oldest === undefined) return;
    this.#cancel = clock.after(Math.max(0, this.#oldest.until - clock.mono()), () => {
      this.#cancel = undefined;
      this.#expire();
      this.#watch();
    });
  }

  #expire(): void {
    const { clock, waitMs } = this.#options;
    const now = clock.mono();
    while (this.#oldest !== undefined && this.#oldest.until <= now) {
      const late = this.#queue.shiftOf(this.#oldest.tenant)!;
      this.#leave(late).refused(new Error(`no connection was free within ${waitMs} ms`));
    }
  }
}

const closedError = (): TapeError => new TapeError("TAPE_STORE_CLOSED", "this store handle is closed");

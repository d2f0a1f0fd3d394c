import type { Clock } from "../base/clock.ts";
import { type QueueItem, TurnQueue } from "../base/turn-queue.ts";
import { TapeError } from "../model/errors.ts";

export interface SlotsOptions {
  readonly clock: Clock;
  /** Number of slots. */
  readonly slots: number;
  /** How many callers may wait; the next one is rejected at once, unless its tenant has few waiting. */
  readonly waiting: number;
  /** How long a caller may wait. */
  readonly waitMs: number;
}

interface Waiter extends QueueItem {
  readonly until: number;
  readonly granted: () => void;
  readonly refused: (error: Error) => void;
  /** Neighbours in order of arrival. */
  older: Waiter | undefined;
  newer: Waiter | undefined;
}

/** After this long without a sign of another tenant, a tenant counts as alone. */
const memoryMs = 1_000;
/** Slots that no tenant may take: its statements may wait for locks, as long as they are allowed to. */
const reservedSlots = 1;
/** Among others a tenant holds at most this share of the slots. A quarter slows down four workers that do little. */
const maxShare = 1 / 2;

/**
 * Limits how many statements run at once. The others wait: in order of arrival within a tenant, and tenants in turn. No
 * tenant holds more than its share, even if nothing else waits: the next statement of another tenant finds a free slot,
 * however long each statement takes. The queue is bounded, and joining and leaving it costs the same at any length. The
 * driver's own queue is unbounded, and dismantles a quarter of a million waiters in quadratic time, blocking the event
 * loop.
 */
export class Slots {
  readonly #options: SlotsOptions;
  #free: number;
  /** How many slots each tenant holds. */
  readonly #held = new Map<string, number>();
  readonly #maxHeld: { readonly alone: number; readonly amongOthers: number };
  /** The latest tenant, and when it last changed. */
  #tenant: string | undefined;
  #sharedAt = Number.NEGATIVE_INFINITY;
  readonly #queue: TurnQueue<Waiter>;
  /**
   * In order of arrival, and so of `until`: all may wait equally long. The oldest of all is the first of its tenant.
   */
  #oldest: Waiter | undefined;
  #newest: Waiter | undefined;
  #cancel: (() => void) | undefined;
  #closed = false;

  constructor(options: SlotsOptions) {
    this.#options = options;
    this.#free = options.slots;
    const alone = Math.max(1, options.slots - reservedSlots);
    this.#maxHeld = { alone, amongOthers: Math.min(alone, Math.ceil(options.slots * maxShare)) };
    this.#queue = new TurnQueue({ pendingItems: options.waiting, pendingBytes: Number.POSITIVE_INFINITY });
  }

  /** How many callers wait. */
  get waiting(): number {
    return this.#queue.length;
  }

  /** Takes a slot if one is free now. `tenant`: its owner; absent: the store itself. */
  takeFree(tenant: string | undefined): boolean {
    if (tenant !== undefined && tenant !== this.#tenant) this.#noteTenant(tenant);
    if (this.#free > 0 && this.#queue.length > 0) this.#grant(); // a share may have grown since
    if (this.#free === 0 || this.#closed || !this.#mayHave(tenant)) return false;
    this.#hold(tenant);
    return true;
  }

  /**
   * Resolves with a slot, which the same tenant must release; absent: the store's own. Throws TAPE_OVERLOADED if too
   * many wait already, except for an entitled caller: it had a slot, lost its connection, and must find out what
   * happened.
   */
  async take(tenant: string | undefined, entitled = false): Promise<void> {
    const { clock, waitMs } = this.#options;
    if (this.#closed) throw closedError();
    if (this.takeFree(tenant)) return;
    if (!entitled && !this.#queue.hasRoom(tenant, 0)) {
      const message = `${this.#queue.length} statements are waiting for a connection`;
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

  give(tenant: string | undefined): void {
    this.#free++;
    if (tenant !== undefined) {
      const held = this.#held.get(tenant)! - 1;
      if (held === 0) this.#held.delete(tenant);
      else this.#held.set(tenant, held);
    }
    if (this.#queue.length > 0) this.#grant();
  }

  /**
   * Grants free slots to waiting callers. A tenant at its limit releases a slot sooner or later, and is reconsidered
   * then.
   */
  #grant(): void {
    while (this.#free > 0) {
      const next = this.#queue.shift(this.#mayHave);
      if (next === undefined) return;
      this.#hold(next.tenant);
      this.#leave(next).granted();
    }
  }

  #hold(tenant: string | undefined): void {
    this.#free--;
    if (tenant !== undefined) this.#held.set(tenant, (this.#held.get(tenant) ?? 0) + 1);
  }

  readonly #mayHave = (tenant: string | undefined): boolean => {
    const held = tenant === undefined ? 0 : (this.#held.get(tenant) ?? 0);
    const { alone, amongOthers } = this.#maxHeld;
    if (held < amongOthers) return true;
    return held < alone && this.#options.clock.mono() - this.#sharedAt >= memoryMs;
  };

  #noteTenant(tenant: string): void {
    if (this.#tenant !== undefined) this.#sharedAt = this.#options.clock.mono();
    this.#tenant = tenant;
  }

  /** Rejects all waiting callers. */
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

  /** One timer, for the oldest waiter. */
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

import type { Clock } from "../base/clock.ts";

/** A tenant shares the event loop for so long after another one's call. */
const sharedMs = 100;
/** Calls that begin in one turn of the event loop begin at once for so long; later ones wait for the next turn. */
const turnMs = 1;
/** A tenant that used the loop for some time leaves it alone for so many times as long. */
const restFactor = 3;
/** What took longer was the machine's doing, not the call's. */
const longestMs = 50;
/** What one item of a batch takes of the store, about: how long the store took says nothing, it may have waited. */
const itemMs = 0.08;
/** Use that needs no rest: a tenant that calls now and then never waits for itself. */
const freeMs = 4;
/** Items of one call that are worked on in one turn. */
const itemsOfTurn = 32;
/** Rows of a page, and of an answer that is written in one turn. */
export const rowsOfTurn = 64;

interface Line {
  readonly tenant: string;
  readonly waiting: (() => void)[];
  /** Its rest ends then. */
  restUntil: number;
}

/**
 * One event loop works for all tenants. As long as one tenant calls, its calls begin as they come. While several call,
 * they take turns: a turn begins one call, and a tenant that has used the loop for a while rests before its next turn.
 * However many calls one tenant has brought, another's next call waits for one of them, and seldom for that.
 *
 *   alone ──call of another tenant──▶ shared ──100 ms of one tenant's calls only──▶ alone
 */
export class Turns {
  readonly #clock: Clock;
  /** Tenants that wait or rest, the next in turn first. */
  readonly #lines = new Map<string, Line>();
  #latest: string | undefined;
  #mixedAt = Number.NEGATIVE_INFINITY;
  /** Whose call began last in this turn of the loop, and when; the time since then is its. */
  #running: Line | undefined;
  #runningSince = 0;
  #turnBegan = 0;
  #waiting = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether calls of several tenants came lately. */
  get shared(): boolean {
    return this.#clock.mono() - this.#mixedAt < sharedMs;
  }

  /** Resolves when the tenant's next call may begin; undefined: at once. */
  next(tenant: string): Promise<void> | undefined {
    const now = this.#clock.mono();
    if (tenant !== this.#latest) {
      if (this.#latest !== undefined) this.#mixedAt = now;
      this.#latest = tenant;
    }
    if (now - this.#mixedAt >= sharedMs) return undefined;
    const line = this.#lineOf(tenant);
    if (line.waiting.length === 0 && line.restUntil <= now && this.#mayBegin(now)) {
      this.#begin(line, now);
      return undefined;
    }
    return new Promise((resolve) => {
      line.waiting.push(resolve);
      this.#waiting++;
      if (this.#running === undefined) this.#plan(now);
    });
  }

  /** How many rows of those asked for one page may have: all of them, or as many as a turn has room for. */
  rows(asked: number | undefined): number | undefined {
    return this.shared ? Math.min(asked ?? rowsOfTurn, rowsOfTurn) : asked;
  }

  /** Works through the items, all at once or, while other tenants call too, a slice in a turn. The first turn is had. */
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
      if (shared) this.#charge(this.#lineOf(tenant), slice.length * itemMs, this.#clock.mono());
      const made = await work(slice);
      if (slice.length === items.length) return made;
      results.push(...made);
      done += slice.length;
    }
    return results;
  }

  #mayBegin(now: number): boolean {
    return this.#running === undefined || now - this.#turnBegan < turnMs;
  }

  #begin(line: Line, now: number): void {
    if (this.#running === undefined) {
      this.#turnBegan = now;
      this.#clock.immediate(() => this.#turn());
    } else this.#charge(this.#running, now - this.#runningSince, now);
    this.#running = line;
    this.#runningSince = now;
  }

  #charge(line: Line, ms: number, now: number): void {
    const from = Math.max(line.restUntil, now - freeMs * restFactor);
    line.restUntil = from + Math.min(ms, longestMs) * restFactor;
  }

  /** The loop has turned: what began in its last turn is over, or waits for the store. */
  #turn(): void {
    const now = this.#clock.mono();
    if (this.#running !== undefined) this.#charge(this.#running, now - this.#runningSince, now);
    this.#running = undefined;
    this.#plan(now);
  }

  /** Begins the next call in turn, or sets the timer for the end of the shortest rest. */
  #plan(now: number): void {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    const alone = now - this.#mixedAt >= sharedMs;
    let wakeAt = this.#mixedAt + sharedMs;
    for (const line of this.#lines.values()) {
      if (line.waiting.length === 0) {
        if (line.restUntil <= now - freeMs * restFactor) this.#lines.delete(line.tenant);
      } else if (alone || line.restUntil <= now) {
        this.#lines.delete(line.tenant);
        this.#lines.set(line.tenant, line);
        this.#waiting--;
        this.#begin(line, now);
        line.waiting.shift()!();
        return;
      } else wakeAt = Math.min(wakeAt, line.restUntil);
    }
    if (this.#waiting > 0) this.#cancelTimer = this.#clock.after(wakeAt - now, () => this.#plan(this.#clock.mono()));
  }

  #lineOf(tenant: string): Line {
    let line = this.#lines.get(tenant);
    if (line === undefined) {
      line = { tenant, waiting: [], restUntil: Number.NEGATIVE_INFINITY };
      this.#lines.set(tenant, line);
    }
    return line;
  }
}

import type { Connections } from "./connections.ts";
import { readFault } from "./errors.ts";
import type { OutageRetry } from "./outage-retry.ts";

/**
 * Journal numbers are taken from the store in blocks of at least this size; unused ones are lost, which does no harm.
 */
const blockSize = 2_000;
/** With fewer left the next block is fetched ahead, so that single numbers need not wait for it. */
const lowMark = 1_000;

/** A transaction needs more numbers than were reserved for it: it must be retried with more. */
export class NumbersExhausted extends Error {}

interface Range {
  next: number;
  left: number;
}

/**
 * Numbers for new journals. Each is taken in the same tick in which it was found to be free: checked first and taken
 * later, many concurrent callers would all see the same ones.
 */
export class JournalAllocator {
  readonly #connections: Connections;
  readonly #outageRetry: OutageRetry;
  readonly #moved: () => Promise<void>;
  #free: Range[] = [];
  #left = 0;
  /** How many numbers all waiting callers need together. */
  #needed = 0;
  #filling: Promise<void> | undefined;

  /** `moved` is called if the store issues no numbers because its server is not the known one. */
  constructor(connections: Connections, outageRetry: OutageRetry, moved: () => Promise<void>) {
    this.#connections = connections;
    this.#outageRetry = outageRetry;
    this.#moved = moved;
  }

  /** One number. */
  async one(): Promise<number> {
    const [range] = this.#left < 1 ? await this.#takeLater(1) : this.#take(1);
    if (this.#left < lowMark) this.#fill().catch(() => {}); // a caller that finds none fetches again and gets the error
    return range!.next;
  }

  /** Reserves numbers for one transaction, so that it need not fetch any midway. Unused ones are returned. */
  async reserve(count: number): Promise<ReservedNumbers> {
    const ranges = this.#left < count ? await this.#takeLater(count) : this.#take(count);
    return new ReservedNumbers(ranges, (rest) => this.#putBack(rest));
  }

  #take(count: number): Range[] {
    const taken: Range[] = [];
    this.#left -= count;
    for (let missing = count; missing > 0; ) {
      const range = this.#free[0]!;
      const size = Math.min(missing, range.left);
      taken.push({ next: range.next, left: size });
      range.next += size;
      range.left -= size;
      missing -= size;
      if (range.left === 0) this.#free.shift();
    }
    return taken;
  }

  #putBack(ranges: readonly Range[]): void {
    for (const range of ranges.toReversed()) {
      if (range.left === 0) continue;
      this.#left += range.left;
      const [first] = this.#free;
      // Usually it directly precedes the free ones, so the list does not grow with the transactions.
      if (first !== undefined && range.next + range.left === first.next) {
        first.next = range.next;
        first.left += range.left;
      } else this.#free.unshift(range);
    }
  }

  async #takeLater(count: number): Promise<Range[]> {
    this.#needed += count;
    try {
      while (this.#left < count) await this.#fill();
      return this.#take(count);
    } finally {
      this.#needed -= count;
    }
  }

  /** All callers that find too few wait for the same block. The next one is large enough for all that wait by then. */
  #fill(): Promise<void> {
    this.#filling ??= this.#fetch(Math.max(blockSize, this.#needed)).finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async #fetch(size: number): Promise<void> {
    let first: unknown;
    while (first === undefined) {
      first = await this.#fetchBlock(size);
      if (first === undefined) await this.#moved();
    }
    this.#free.push({ next: Number(first), left: size });
    this.#left += size;
  }

  /** Repeated after a lost response: the block of the lost one is lost like unused numbers. */
  async #fetchBlock(size: number): Promise<unknown> {
    const connections = this.#connections;
    try {
      const fetch = () => connections.ask("journals.block", { size });
      return (await this.#outageRetry.run(fetch)).rows[0]?.first;
    } catch (error) {
      throw readFault(error);
    }
  }
}

/** The numbers of one transaction. */
export class ReservedNumbers {
  readonly #ranges: Range[];
  readonly #putBack: (rest: readonly Range[]) => void;

  constructor(ranges: Range[], putBack: (rest: readonly Range[]) => void) {
    this.#ranges = ranges;
    this.#putBack = putBack;
  }

  next(): number {
    const range = this.#ranges[0];
    if (range === undefined) throw new NumbersExhausted();
    if (--range.left === 0) this.#ranges.shift();
    return range.next++;
  }

  /** The transaction is over, however it ended; a number that it used is never used again. */
  done(): void {
    this.#putBack(this.#ranges.splice(0));
  }
}

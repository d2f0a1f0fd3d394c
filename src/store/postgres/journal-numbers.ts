import type { Connections } from "./connections.ts";
import { readFault } from "./errors.ts";
import type { OutageRetry } from "./outage-retry.ts";

/** Journal numbers are taken from the store in blocks of at least so many; an unused rest is lost, which harms nobody. */
const blockSize = 2_000;
/** With fewer at hand the next block is fetched ahead: who needs one number does not wait for it. */
const low = 1_000;

/** A transaction wanted more numbers than were set aside for it: it must be tried again with more. */
export class NumbersExhausted extends Error {}

interface Range {
  next: number;
  left: number;
}

/**
 * Numbers for journals that come to be. Each is handed to one caller in the same turn in which it was seen to be there:
 * were it looked for first and taken later, many callers at once would all see the same ones.
 */
export class JournalAllocator {
  readonly #connections: Connections;
  readonly #patience: OutageRetry;
  readonly #moved: () => Promise<void>;
  #free: Range[] = [];
  #left = 0;
  /** How many those that wait for a block want together. */
  #wanted = 0;
  #filling: Promise<void> | undefined;

  /** `moved` is called when the store hands out no numbers because its server is another one than before. */
  constructor(connections: Connections, patience: OutageRetry, moved: () => Promise<void>) {
    this.#connections = connections;
    this.#patience = patience;
    this.#moved = moved;
  }

  /** One number. */
  async one(): Promise<number> {
    const [range] = this.#left < 1 ? await this.#takeLater(1) : this.#take(1);
    if (this.#left < low) this.#fill().catch(() => {}); // who finds none asks again, and is told why
    return range!.next;
  }

  /** So many numbers for one transaction, to be had without asking in the middle. What it leaves is given back. */
  async reserve(count: number): Promise<ReservedNumbers> {
    const ranges = this.#left < count ? await this.#takeLater(count) : this.#take(count);
    return new ReservedNumbers(ranges, (rest) => this.#giveBack(rest));
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

  #giveBack(ranges: readonly Range[]): void {
    for (const range of ranges.toReversed()) {
      if (range.left === 0) continue;
      this.#left += range.left;
      const [first] = this.#free;
      // As a rule it lies right before what is free: the list does not grow with the transactions.
      if (first !== undefined && range.next + range.left === first.next) {
        first.next = range.next;
        first.left += range.left;
      } else this.#free.unshift(range);
    }
  }

  async #takeLater(count: number): Promise<Range[]> {
    this.#wanted += count;
    try {
      while (this.#left < count) await this.#fill();
      return this.#take(count);
    } finally {
      this.#wanted -= count;
    }
  }

  /** All that find too few wait for the same block. The next one is large enough for all that wait by then. */
  #fill(): Promise<void> {
    this.#filling ??= this.#fetch(Math.max(blockSize, this.#wanted)).finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }

  async #fetch(size: number): Promise<void> {
    let first: unknown;
    while (first === undefined) {
      first = await this.#ask(size);
      if (first === undefined) await this.#moved();
    }
    this.#free.push({ next: Number(first), left: size });
    this.#left += size;
  }

  /** Asked again after a lost answer: a block that nobody got is lost like an unused rest. */
  async #ask(size: number): Promise<unknown> {
    const connections = this.#connections;
    try {
      const ask = () => connections.ask("journals.block", { size });
      return (await this.#patience.run(ask)).rows[0]?.first;
    } catch (error) {
      throw readFault(error);
    }
  }
}

/** The numbers of one transaction. */
export class ReservedNumbers {
  readonly #ranges: Range[];
  readonly #giveBack: (rest: readonly Range[]) => void;

  constructor(ranges: Range[], giveBack: (rest: readonly Range[]) => void) {
    this.#ranges = ranges;
    this.#giveBack = giveBack;
  }

  next(): number {
    const range = this.#ranges[0];
    if (range === undefined) throw new NumbersExhausted();
    if (--range.left === 0) this.#ranges.shift();
    return range.next++;
  }

  /** The transaction is over, however it went; a number that it used is never used again. */
  done(): void {
    this.#giveBack(this.#ranges.splice(0));
  }
}

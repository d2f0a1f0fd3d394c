/** Journal numbers are taken from the store in blocks of at least this size; unused ones are lost, which does no harm. */
const blockSize = 2_000;

/** A transaction needs more numbers than were reserved for it: it must be retried with more. */
export class NumbersExhausted extends Error {}

/** The numbers of one transaction. */
export class ReservedNumbers {
  readonly first: number;
  readonly count: number;
  #next: number;

  constructor(first: number, count: number) {
    this.first = first;
    this.count = count;
    this.#next = first;
  }

  /** The transaction is repeated, and nothing of it remains: it uses the same numbers, so that it keeps its place. */
  restart(): void {
    this.#next = this.first;
  }

  next(): number {
    if (this.#next === this.first + this.count) throw new NumbersExhausted();
    return this.#next++;
  }

  /** The first number that was not used. */
  get unused(): number {
    return this.#next;
  }
}

/** Numbers for new journals. Most transactions use none or one, so what one leaves is used by the next. */
export class JournalNumbers {
  readonly #fetch: (size: number) => Promise<number>;
  #next = 0;
  #end = 0;
  #filling: Promise<void> | undefined;

  /** `fetch` takes a block from the store and returns its first number. */
  constructor(fetch: (size: number) => Promise<number>) {
    this.#fetch = fetch;
  }

  async reserve(count: number): Promise<ReservedNumbers> {
    while (this.#end - this.#next < count) await this.#fill(count);
    const reserved = new ReservedNumbers(this.#next, count);
    this.#next += count;
    return reserved;
  }

  /** The transaction is over. What it did not use is free again, if nothing was reserved after it. */
  release(reserved: ReservedNumbers): void {
    if (this.#next === reserved.first + reserved.count) this.#next = reserved.unused;
  }

  /** All callers that find too few wait for the same block. */
  #fill(count: number): Promise<void> {
    this.#filling ??= (async () => {
      const size = Math.max(blockSize, 2 * count);
      const first = await this.#fetch(size);
      if (first !== this.#end) this.#next = first;
      this.#end = first + size;
    })().finally(() => {
      this.#filling = undefined;
    });
    return this.#filling;
  }
}

import type { Clock } from "../base/clock.ts";

/** A smaller body takes no time worth waiting for. */
const smallBytes = 4 * 1024;
/** Parsed and checked in one turn of the event loop: some milliseconds, as for one body that is not weighed. */
const turnBytes = 64 * 1024;

/**
 * Bodies that arrive together are not parsed together. Two hundred of eighty kilobytes are a second of work; unpacked by
 * other threads they are ready at once, and the event loop would take them all in one turn, with everybody else waiting.
 */
export class ParseTurns {
  readonly #clock: Clock;
  #left = turnBytes;
  #queue: { readonly bytes: number; readonly begin: () => void }[] = [];
  #scheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when a body of so many bytes may be parsed. */
  async next(bytes: number): Promise<void> {
    if (bytes < smallBytes) return;
    this.#schedule();
    if (this.#queue.length === 0 && this.#left > 0) this.#left -= bytes;
    else await new Promise<void>((begin) => this.#queue.push({ bytes, begin }));
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#clock.immediate(() => this.#turn());
  }

  #turn(): void {
    this.#scheduled = false;
    this.#left = turnBytes;
    let count = 0;
    for (; count < this.#queue.length && this.#left > 0; count++) {
      const { bytes, begin } = this.#queue[count]!;
      this.#left -= bytes;
      begin();
    }
    this.#queue = this.#queue.slice(count);
    if (this.#queue.length > 0) this.#schedule();
  }
}

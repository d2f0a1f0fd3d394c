import type { Clock } from "../base/clock.ts";

/** Parsing a smaller body takes too little time to wait for a turn. */
const smallBytes = 4 * 1024;
/** Bytes parsed and checked per turn of the event loop: some milliseconds, as for one body that is not weighed. */
const turnBytes = 64 * 1024;

/**
 * Bodies that arrive together are not parsed together. Two hundred of eighty kilobytes are a second of work. Other
 * threads unpack them, so they are ready at once, and the event loop would parse them all in one turn and block every
 * other call.
 */
export class ParseTurns {
  readonly #clock: Clock;
  #left = turnBytes;
  #queue: { readonly bytes: number; readonly start: () => void }[] = [];
  #scheduled = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves when a body of this size may be parsed. */
  async next(bytes: number): Promise<void> {
    if (bytes < smallBytes) return;
    this.#schedule();
    if (this.#queue.length === 0 && this.#left > 0) this.#left -= bytes;
    else await new Promise<void>((start) => this.#queue.push({ bytes, start }));
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
      const { bytes, start } = this.#queue[count]!;
      this.#left -= bytes;
      start();
    }
    this.#queue = this.#queue.slice(count);
    if (this.#queue.length > 0) this.#schedule();
  }
}

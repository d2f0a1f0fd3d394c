import { TapeError } from "../model/errors.ts";

/** Authors are warned well before the limit bites. */
const warnAt = 0.8;
/** Kept free for what must still be written when the run fails: outcomes of acts under way, obligations, the end. */
const reserveOf = (limit: number): number => Math.max(8, Math.min(1_000, Math.floor(limit * 0.05)));

/** How long a run's journal may get: replay reads all of it. */
export class JournalSize {
  readonly #limit: number;
  readonly #warn: () => void;
  #warned: boolean;

  constructor(limit: number, head: number, warn: () => void) {
    this.#limit = limit;
    this.#warn = warn;
    this.#warned = head >= limit * warnAt; // whoever wrote past it has said so
  }

  note(head: number): void {
    if (this.#warned || head < this.#limit * warnAt) return;
    this.#warned = true;
    this.#warn();
  }

  isFull(head: number): boolean {
    return head >= this.#limit - reserveOf(this.#limit);
  }

  error(): TapeError {
    const message = `the journal has almost ${this.#limit} records, which is all it takes: split the work into child runs`;
    return new TapeError("TAPE_TOO_LARGE", message, { limit: "journalRecords" });
  }
}

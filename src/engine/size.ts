import type { Log } from "../base/log.ts";
import { TapeError } from "../model/errors.ts";

/** Authors are warned when a wake begins to cost, and once more well before the limit bites. */
const warnAt = 0.8;
const longFrom = 10_000;
/** Kept free for what must still be written when the run fails: outcomes of acts under way, obligations, the end. */
const reserveOf = (limit: number): number => Math.max(8, Math.min(1_000, Math.floor(limit * 0.05)));

/** How long a run's journal may get: replay reads all of it. */
export class JournalSize {
  readonly #limit: number;
  readonly #warn: (records: number) => void;
  /** Where the next warning is due; those that were passed have been given by who wrote past them. */
  readonly #marks: number[];

  constructor(limit: number, head: number, warn: (records: number) => void) {
    this.#limit = limit;
    this.#warn = warn;
    this.#marks = [longFrom, Math.ceil(limit * warnAt)]
      .sort((a, b) => a - b)
      .filter((mark) => mark > head && mark <= limit * warnAt + 1);
  }

  note(head: number): void {
    if (this.#marks.length === 0 || head < this.#marks[0]!) return;
    while (this.#marks.length > 0 && head >= this.#marks[0]!) this.#marks.shift();
    this.#warn(head);
  }

  isFull(head: number): boolean {
    return head >= this.#limit - reserveOf(this.#limit);
  }

  error(): TapeError {
    const message = `the journal has almost ${this.#limit} records, which is all it takes: split the work into child runs`;
    return new TapeError("TAPE_TOO_LARGE", message, { limit: "journalRecords" });
  }
}

export function warnLong(log: Log, run: string, records: number, limit: number): void {
  const next = "Every wake reads all of it: split the work into child runs before the limit, at which the run fails.";
  log("warn", "run.journal_long", { run, records, limit, next });
}

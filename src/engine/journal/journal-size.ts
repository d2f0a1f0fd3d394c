import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";

/** Authors are warned when a wake begins to cost, and once more well before the limit bites. */
const warnAt = 0.8;
const longFrom = 10_000;
/** Kept free for what must still be written when the run fails: outcomes of acts under way, obligations, the end. */
const reserveOf = (limit: number): number => Math.max(8, Math.min(1_000, Math.floor(limit * 0.05)));

/** Where the next warning is due; the marks that the journal has passed were given by the process that wrote past them. */
function markAfter(head: number, limit: number): number {
  const last = Math.ceil(limit * warnAt);
  const first = Math.min(longFrom, last);
  return head < first ? first : head < last ? last : Number.POSITIVE_INFINITY;
}

/** How long a run's journal may get: replay reads all of it. */
export class JournalSize {
  readonly #limit: number;
  readonly #full: number;
  readonly #warn: (records: number) => void;
  #mark: number;

  constructor(limit: number, head: number, warn: (records: number) => void) {
    this.#limit = limit;
    this.#full = limit - reserveOf(limit);
    this.#warn = warn;
    this.#mark = markAfter(head, limit);
  }

  note(head: number): void {
    if (head < this.#mark) return;
    this.#mark = markAfter(head, this.#limit);
    this.#warn(head);
  }

  isFull(head: number): boolean {
    return head >= this.#full;
  }

  error(): TapeError {
    const message = `the journal has almost ${this.#limit} records, which is all it takes: split the work into child runs`;
    return new TapeError("TAPE_TOO_LARGE", message, { limit: "journalRecords" });
  }
}

export function warnLong(log: Log, run: string, records: number, limit: number): void {
  const next = "Every wake reads all of it: split the work into child runs before the limit, at which the run fails.";
  log("warn", "run.journal_near_limit", { run, records, limit, next });
}

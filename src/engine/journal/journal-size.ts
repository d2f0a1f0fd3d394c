import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";

/** Authors are warned when reading the journal becomes expensive, and again well before the limit. */
const warnAt = 0.8;
const longFrom = 10_000;
/** Reserved for what a failing run must still write: outcomes of effects in progress, obligations, its end. */
const reserveOf = (limit: number): number => Math.max(8, Math.min(1_000, Math.floor(limit * 0.05)));

/** The head at which the next warning is due. The process that wrote past an earlier mark has already warned. */
function markAfter(head: number, limit: number): number {
  const last = Math.ceil(limit * warnAt);
  const first = Math.min(longFrom, last);
  return head < first ? first : head < last ? last : Number.POSITIVE_INFINITY;
}

/** Limits the length of a generation of a run's journal, because replay reads all of it. */
export class JournalSize {
  readonly #limit: number;
  readonly #full: number;
  readonly #warn: (records: number) => void;
  /** The records before the generation. */
  readonly #before: number;
  #mark: number;

  constructor(limit: number, { head, begins }: { head: number; begins: number }, warn: (records: number) => void) {
    this.#limit = limit;
    this.#full = limit - reserveOf(limit);
    this.#warn = warn;
    this.#before = begins - 1;
    this.#mark = markAfter(head - this.#before, limit);
  }

  note(head: number): void {
    const records = head - this.#before;
    if (records < this.#mark) return;
    this.#mark = markAfter(records, this.#limit);
    this.#warn(records);
  }

  isFull(head: number): boolean {
    return head - this.#before >= this.#full;
  }

  error(): TapeError {
    const message = `the journal has almost reached its limit of ${this.#limit} records: continue as new before that, or split the work into child runs`;
    return new TapeError("TAPE_TOO_LARGE", message, { limit: "journalRecords" });
  }
}

export function warnLong(log: Log, run: string, records: number, limit: number): void {
  const next =
    "Every drive reads all of it. Continue as new when tape.journal.long, or split the work into child runs.";
  const event = records >= limit * warnAt ? "run.journal_near_limit" : "run.journal_long";
  log("warn", event, { run, records, limit, next });
}

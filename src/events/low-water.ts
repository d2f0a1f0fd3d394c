/** A position in the feed, and when its last record was written. */
export interface Mark {
  /** null: the start of the feed. */
  readonly cursor: string | null;
  readonly at: number;
}

/** An event that is under way. Its mark is that of the last record before the next event. */
export interface PendingEvent {
  mark: Mark;
  settled: boolean;
}

/**
 * The low-water mark: the last position before which everything is settled, that is, delivered, filtered out or a dead
 * letter. Lanes settle events in any order; a checkpoint beyond an unsettled one would lose it.
 */
export class LowWater {
  #mark: Mark;
  #pending: PendingEvent[] = [];
  #first = 0;
  /** Events that were read, that are behind the mark, and that are behind the checkpoint. */
  #read = 0;
  #behind = 0;
  #saved = 0;

  constructor(mark: Mark) {
    this.#mark = mark;
  }

  get mark(): Mark {
    return this.#mark;
  }

  /** Events ahead of the checkpoint: a successor would send these again. */
  get ahead(): number {
    return this.#read - this.#saved;
  }

  /** Events behind the mark. */
  get behind(): number {
    return this.#behind;
  }

  /** Events that the next checkpoint passes. */
  get unsaved(): number {
    return this.#behind - this.#saved;
  }

  /** When the oldest unsettled event was written; undefined: all are settled. */
  get oldestAt(): number | undefined {
    return this.#pending[this.#first]?.mark.at;
  }

  /** An event was read. */
  add(mark: Mark): PendingEvent {
    const pending = { mark, settled: false };
    this.#pending.push(pending);
    this.#read++;
    return pending;
  }

  /** Everything up to this position was read, and nothing of it since the last event is to be sent. */
  pass(mark: Mark): void {
    const last = this.#pending.at(-1);
    if (last === undefined) this.#mark = mark;
    else last.mark = { cursor: mark.cursor, at: last.mark.at };
  }

  /** The checkpoint is at the mark that had this many events behind it. */
  saved(behind: number): void {
    this.#saved = Math.max(this.#saved, behind);
  }

  settle(pending: PendingEvent): void {
    pending.settled = true;
    let first = this.#first;
    while (this.#pending[first]?.settled === true) this.#mark = this.#pending[first++]!.mark;
    this.#behind += first - this.#first;
    this.#first = first;
    if (first === this.#pending.length) {
      this.#pending = [];
      this.#first = 0;
    } else if (first > 1_024 && first * 2 > this.#pending.length) {
      this.#pending = this.#pending.slice(first);
      this.#first = 0;
    }
  }
}

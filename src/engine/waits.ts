import type { NewRecord, RecordData } from "../model/records.ts";
import type { History, Note } from "./history.ts";

/** An operation that waits for a note, and what it makes of one. */
export interface Wait {
  readonly pos: number;
  /** For people: what the run waits for. */
  readonly about: string;
  /** The record that ends the wait, or undefined if this note is not for it. */
  readonly match: (note: Note) => NewRecord | undefined;
  readonly written: () => void;
}

/**
 * Notes on the one side, waiting operations on the other. A note that nobody waits for yet stays (a signal may come
 * before its gate); one that was used is gone. Timers, outcomes and children settle at most one wait each.
 */
export class Waits {
  #waits: Wait[] = [];
  #notes: Note[] = [];
  readonly #evidence: RecordData<"effect.evidence">[] = [];
  #seen: number;

  constructor(history: History, notes: readonly Note[]) {
    this.#seen = history.taken;
    // What was taken into the journal before, and not used by it, still waits: a signal without a gate, a child's end.
    this.#notes = notes.filter((note) => note.seq <= history.taken && !history.used(note));
    // Evidence counts from the moment it is there: it may say what became of the attempt that is found cut short.
    for (const note of notes) if (note.kind === "effect.evidence") this.#evidence.push(note.data);
  }

  get empty(): boolean {
    return this.#waits.length === 0;
  }

  get about(): string[] {
    return this.#waits.map((wait) => wait.about);
  }

  /** How many notes have been taken from the inbox. */
  get seen(): number {
    return this.#seen;
  }

  arrive(notes: readonly Note[]): void {
    for (const note of notes) {
      if (note.seq <= this.#seen) continue;
      this.#seen = note.seq;
      this.#notes.push(note);
    }
  }

  add(wait: Wait): void {
    this.#waits.push(wait);
  }

  /** Every wait is refused (the run is cancelled): they are gone, the notes stay. */
  clear(): readonly Wait[] {
    const gone = this.#waits;
    this.#waits = [];
    return gone;
  }

  /** Waits and notes that belong together, oldest wait first; each is used once. */
  matches(): { readonly record: NewRecord; readonly wait: Wait }[] {
    const found: { record: NewRecord; wait: Wait }[] = [];
    this.#waits = this.#waits.filter((wait) => {
      for (const [k, note] of this.#notes.entries()) {
        const record = wait.match(note);
        if (record === undefined) continue;
        this.#notes.splice(k, 1);
        found.push({ record, wait });
        return false;
      }
      return true;
    });
    return found;
  }

  /** What a late owner said about an attempt that this run still decides over: that it did happen outweighs the rest. */
  evidenceFor(pos: number, token: bigint): RecordData<"effect.evidence"> | undefined {
    const about = this.#evidence.filter((evidence) => evidence.pos === pos);
    return about.find(({ happened }) => happened) ?? about.find((evidence) => evidence.token === String(token));
  }
}

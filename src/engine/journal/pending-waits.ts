import type { NewRecord, RecordData } from "../../model/records.ts";
import type { EffectRef, UnresolvedEffect } from "../../model/rows.ts";
import type { History, Note } from "../replay/history.ts";

/** An operation that waits for a note, and what it makes of one. */
export interface Wait {
  readonly pos: number;
  /** For people: what the run waits for. */
  readonly description: string;
  /** The record that ends the wait, or undefined if this note is not for it. */
  readonly match: (note: Note) => NewRecord | undefined;
  readonly written: () => void;
  /** The effect whose outcome it waits for, if it is one. */
  readonly effect?: string;
  /** It sleeps: the record with which its driver ends that by itself once the time has come. */
  readonly endSleep?: () => NewRecord;
}

/** A note that a wait takes, by the record that says so; a refused signal leaves its gate waiting. */
export interface Match {
  readonly record: NewRecord;
  readonly wait: Wait;
}

/** An effect that only a person can settle. */
export interface StuckEffect extends UnresolvedEffect {
  readonly name: string;
}

interface LastStatus {
  readonly seq: number;
  readonly status: string;
  readonly reason: string | undefined;
  readonly error: unknown;
}

/**
 * Notes on the one side, waiting operations on the other. A note that nobody waits for yet stays (a signal may come
 * before its gate); one that was used is gone. Timers, outcomes and children settle at most one wait each.
 */
export class PendingWaits {
  #waits: Wait[] = [];
  #notes: Note[] = [];
  readonly #evidence: RecordData<"effect.evidence">[] = [];
  readonly #lastStatuses = new Map<string, LastStatus>();
  readonly #run: number;
  #seen: number;

  constructor(history: History, notes: readonly Note[], run: number) {
    this.#run = run;
    this.#seen = history.taken;
    // What was taken into the journal before, and not used by it, still waits: a signal without a gate, a child's end.
    this.#notes = notes.filter((note) => note.seq <= history.taken && !history.used(note));
    // Evidence counts from the moment it is there: it may say what became of the attempt that is found cut short.
    for (const note of notes) if (note.kind === "effect.evidence") this.#evidence.push(note.data);
    for (const note of notes) this.#onNote(note);
  }

  get empty(): boolean {
    return this.#waits.length === 0;
  }

  get descriptions(): string[] {
    return this.#waits.map((wait) => wait.description);
  }

  /** How many notes have been taken from the inbox. */
  get notesTaken(): number {
    return this.#seen;
  }

  addNotes(notes: readonly Note[]): void {
    for (const note of notes) {
      if (note.seq <= this.#seen) continue;
      this.#seen = note.seq;
      this.#notes.push(note);
      this.#onNote(note);
    }
  }

  /** What was last told of an effect that is not the run's to decide. */
  lastStatus({ run, pos, sub }: EffectRef): LastStatus | undefined {
    return this.#lastStatuses.get(`${run} ${pos} ${sub}`);
  }

  /** A person has decided about what the run is stuck on. */
  resolves(stuck: History["stuck"]): boolean {
    return (stuck?.record.effects ?? []).some((place) => {
      const told = this.lastStatus(place);
      return told !== undefined && told.seq > stuck!.taken && told.status !== "STUCK";
    });
  }

  /** The effects that are waited for, if each of them needs a person: as long as something else may move it, it waits. */
  get stuckEffects(): readonly StuckEffect[] {
    const doubts = this.#waits.map(({ pos, effect }): StuckEffect | undefined => {
      if (effect === undefined) return undefined;
      const place = { run: this.#run, pos, sub: 0 };
      const told = this.lastStatus(place);
      return told?.status === "STUCK" ? { ...place, name: effect, reason: told.reason, error: told.error } : undefined;
    });
    return doubts.every((doubt) => doubt !== undefined) ? doubts : [];
  }

  #onNote(note: Note): void {
    if (note.kind !== "effect.outcome") return;
    const { run = this.#run, pos, sub, status, reason, error } = note.data;
    this.#lastStatuses.set(`${run} ${pos} ${sub}`, { seq: note.seq, status, reason, error });
  }

  add(wait: Wait): void {
    this.#waits.push(wait);
  }

  /** Who sleeps at this position. */
  sleepAt(pos: number): Wait | undefined {
    return this.#waits.find((wait) => wait.pos === pos && wait.endSleep !== undefined);
  }

  /** It needs no note any more. */
  remove(wait: Wait): void {
    this.#waits = this.#waits.filter((one) => one !== wait);
  }

  /** Every wait is refused (the run is cancelled): they are gone, the notes stay. */
  clear(): readonly Wait[] {
    const gone = this.#waits;
    this.#waits = [];
    return gone;
  }

  /** Waits and notes that belong together, oldest wait first; each is used once. */
  matches(): Match[] {
    const found: Match[] = [];
    this.#waits = this.#waits.filter((wait) => {
      for (let k = 0; k < this.#notes.length; k++) {
        const record = wait.match(this.#notes[k]!);
        if (record === undefined) continue;
        this.#notes.splice(k, 1);
        found.push({ record, wait });
        if (record.kind !== "signal.refused") return false;
        k--; // the note is used up, and the gate still waits
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

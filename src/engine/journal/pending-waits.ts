import type { TapeError } from "../../model/errors.ts";
import { redriveTimer } from "../../model/projection.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import { type EffectRef, effectRefOf, type UnresolvedEffect } from "../../model/rows.ts";
import type { History, Note } from "../replay/history.ts";

/** An operation that waits for a note. */
export interface Wait {
  readonly pos: number;
  /** What the run waits for, shown to operators. */
  readonly description: string;
  /** The record that ends the wait, `resume` if it needs none, or undefined if this note is not for it. */
  readonly match: (note: Note) => NewRecord | "resume" | undefined;
  readonly written: () => void;
  /** The effect whose outcome it waits for, if any. */
  readonly effect?: string;
  /** Set for a step that has given up: no note ends the wait, and the run is STUCK once nothing runs. */
  readonly gaveUp?: TapeError;
  /** The effects that an operator must resolve before, if any. */
  readonly stuckOn?: readonly EffectRef[];
  /** The run is not idle because of it alone: it ends another wait. */
  readonly background?: true;
  /** The cancellation of the run does not end it. */
  readonly shielded?: true;
  /** Whether this note is a reason to check again; the note stays for others. */
  readonly watches?: (note: Note) => boolean;
  /** Called, without the wait, after such a note. */
  readonly woken?: () => void;
  /** Set for a sleep: the record with which the driver ends it without a note. */
  readonly endSleep?: () => NewRecord;
}

/** A wait and the record of the note that matches it. After a refused signal the gate keeps waiting. */
export interface Match {
  readonly record: NewRecord;
  readonly wait: Wait;
}

/** An effect that only an operator can settle. */
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
 * Matches notes with waiting operations. A note without a wait stays, because a signal may arrive before its gate; a
 * used note is removed. Timers, outcomes and children settle at most one wait each.
 */
export class PendingWaits {
  #waits: Wait[] = [];
  #notes: Note[] = [];
  readonly #evidence: RecordData<"effect.evidence">[] = [];
  readonly #lastStatuses = new Map<string, LastStatus>();
  readonly #run: number;
  #seen: number;
  /** The highest position of a redrive whose timer has fired. */
  #redriven = 0;

  constructor(history: History, notes: readonly Note[], run: number) {
    this.#run = run;
    this.#seen = history.taken;
    // Notes that were taken earlier and not used still count: a signal without a gate, the end of a child.
    this.#notes = notes.filter((note) => note.seq <= history.taken && !history.used(note));
    // Evidence counts even before it is taken: it may settle an attempt that a crash interrupted.
    for (const note of notes) if (note.kind === "effect.evidence") this.#evidence.push(note.data);
    for (const note of notes) this.#updateStatus(note);
  }

  get empty(): boolean {
    return this.#waits.every(({ background }) => background === true);
  }

  get descriptions(): string[] {
    return this.#waits.map((wait) => wait.description);
  }

  /** How many notes have been taken from the inbox. */
  get notesTaken(): number {
    return this.#seen;
  }

  /** Signals that no gate has taken, and that one of the next generation may take. */
  get unused(): readonly Note[] {
    return this.#notes.filter((note) => note.kind === "signal.sent" && note.data.pos === undefined);
  }

  addNotes(notes: readonly Note[]): void {
    for (const note of notes) {
      if (note.seq <= this.#seen) continue;
      this.#seen = note.seq;
      this.#notes.push(note);
      this.#updateStatus(note);
    }
    const woken = this.#waits.filter(({ watches }) => watches !== undefined && notes.some(watches));
    if (woken.length > 0) this.#waits = this.#waits.filter((wait) => !woken.includes(wait));
    for (const wait of woken) wait.woken?.();
  }

  /** The last reported status of an effect that its item decides. */
  lastStatus({ run, pos, sub }: EffectRef): LastStatus | undefined {
    return this.#lastStatuses.get(`${run} ${pos} ${sub}`);
  }

  /** An operator has resolved an effect on which the run is STUCK, or the timer of a redrive has fired. */
  resolves(stuck: History["stuck"]): boolean {
    // A timer that was set before the run became stuck belongs to an earlier time.
    if (stuck !== undefined && this.#redriven > stuck.seq) return true;
    return (stuck?.record.effects ?? []).some((ref) => {
      const last = this.lastStatus(ref);
      return last !== undefined && last.seq > stuck!.taken && last.status !== "STUCK";
    });
  }

  /** The awaited effects if every wait is for one that needs an operator; otherwise none: the run may resume. */
  get stuckEffects(): readonly StuckEffect[] {
    const waits = this.#waits.filter(({ background }) => background !== true);
    const effects = waits.map(({ pos, effect }): StuckEffect | undefined => {
      if (effect === undefined) return undefined;
      const ref = { run: this.#run, pos, sub: 0 };
      const last = this.lastStatus(ref);
      return last?.status === "STUCK" ? { ...ref, name: effect, reason: last.reason, error: last.error } : undefined;
    });
    return effects.every((effect) => effect !== undefined) ? effects : [];
  }

  /** Why the run needs an operator whatever else it waits for. */
  get gaveUp(): TapeError | undefined {
    return this.#waits.find((wait) => wait.gaveUp !== undefined)?.gaveUp;
  }

  /** The effects that an operator must resolve: those that every wait is for, or those of a wait that has given up. */
  get stuckOn(): readonly EffectRef[] {
    const gaveUp = this.#waits.find((wait) => wait.gaveUp !== undefined);
    return gaveUp === undefined ? this.stuckEffects.map(effectRefOf) : (gaveUp.stuckOn ?? []);
  }

  #updateStatus(note: Note): void {
    if (note.kind === "timer.fired" && note.data.purpose === redriveTimer) {
      this.#redriven = Math.max(this.#redriven, note.data.pos);
    }
    if (note.kind !== "effect.outcome") return;
    const { run = this.#run, pos, sub, status, reason, error } = note.data;
    this.#lastStatuses.set(`${run} ${pos} ${sub}`, { seq: note.seq, status, reason, error });
  }

  add(wait: Wait): void {
    this.#waits.push(wait);
  }

  /** The sleep at this position. */
  sleepAt(pos: number): Wait | undefined {
    return this.#waits.find((wait) => wait.pos === pos && wait.endSleep !== undefined);
  }

  /** Removes a wait that ended without a note. */
  remove(wait: Wait): void {
    this.#waits = this.#waits.filter((other) => other !== wait);
  }

  /** Removes the waits of a cancelled run or an ended scope, but those to keep; the notes stay. */
  clear(keep: (wait: Wait) => boolean | undefined): void {
    if (this.#waits.length > 0) this.#waits = this.#waits.filter(keep);
  }

  /** Matching waits and notes, oldest wait first; each is used once. */
  matches(): Match[] {
    const found: Match[] = [];
    this.#waits = this.#waits.filter((wait) => {
      for (let k = 0; k < this.#notes.length; k++) {
        const record = wait.match(this.#notes[k]!);
        if (record === undefined) continue;
        this.#notes.splice(k, 1);
        if (record === "resume") return false;
        found.push({ record, wait });
        if (record.kind !== "signal.refused") return false;
        k--; // the note is used, and the gate still waits
      }
      return true;
    });
    return found;
  }

  /** Evidence about an attempt that this run still decides. Evidence that the effect happened outweighs the rest. */
  evidenceFor(pos: number, token: bigint): RecordData<"effect.evidence"> | undefined {
    const about = this.#evidence.filter((evidence) => evidence.pos === pos);
    return about.find(({ happened }) => happened) ?? about.find((evidence) => evidence.token === String(token));
  }
}

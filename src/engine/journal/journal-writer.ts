import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, isTapeError, type TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { NewRecord } from "../../model/records.ts";

/** The part of a store through which records enter. */
export interface JournalAppender {
  append(fence: Fence, entry: { after: number; records: readonly NewRecord[] }): Promise<Appended>;
}

interface Appended {
  readonly head: number;
  readonly notes: number;
}

/** Records that are to be written together, and who hears what came of it. */
export interface PendingWrite {
  readonly records: readonly NewRecord[];
  /** Goes by itself, and every refusal is its own. */
  readonly alone: boolean;
  /** Called in journal order, with a rest for the code between two. */
  written(): void;
  refused(error: TapeError): void;
}

/** An append that is under way. */
interface InFlightAppend {
  readonly batch: readonly PendingWrite[];
  readonly records: readonly NewRecord[];
  readonly next: () => void;
}

export interface JournalWriterOptions {
  readonly door: JournalAppender;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly head: number;
  /** Throws when the lease can no longer be trusted: then nothing is sent. */
  readonly assertHeld: () => void;
  readonly onNotes: (notes: number) => void;
  readonly onWritten: (records: readonly NewRecord[], head: number) => void;
  /** Everything is written and told. */
  readonly onIdle: () => void;
  /** The term is over, or nobody knows what the store holds: nothing more may be written. */
  readonly onLost: (error: unknown) => void;
}

/** Refusals that concern one write alone; all others end the drive. */
const writeErrors: readonly ErrorCode[] = [
  "TAPE_BUSINESS_KEY_TAKEN",
  "TAPE_BUDGET_EXCEEDED",
  "TAPE_VERSION_CONFLICT",
  "TAPE_RUN_CONFLICT",
  "TAPE_TOO_LARGE",
  "TAPE_NOT_ENCODABLE",
  "TAPE_BAD_INPUT",
];
/** Refusals of a step of the run's own machine, which its driver knows how to deal with. */
const runErrors: readonly ErrorCode[] = ["TAPE_NOTES_PENDING", "TAPE_RUN_UNSETTLED", "TAPE_ILLEGAL_TRANSITION"];
/** What has gathered while an append was under way goes together, up to this many writes. */
const maxBatchedWrites = 64;

/**
 * The writer of one run's journal: one append in flight, what arrives meanwhile goes together into the next. Results are
 * told in journal order, one at a time, with the code at rest in between: exactly as replay will tell them.
 */
export class JournalWriter {
  readonly #options: JournalWriterOptions;
  #head: number;
  #queue: PendingWrite[] = [];
  /** An append is under way. */
  #writing = false;
  #whenLanded: (() => void)[] = [];
  #emitting = false;
  #told: Pick<PendingWrite, "written">[] = [];
  #over = false;
  #quiet: (() => void)[] = [];
  #flight: InFlightAppend | undefined;
  // Made once for each journal, not for each write: this is the hottest path of the engine.
  readonly #pumpOn = (): void => this.#pump();
  readonly #tellOn = (): void => this.#tellNext();
  readonly #landOn = (appended: Appended): void => this.#land(appended);
  readonly #refuseOn = (error: unknown): void => this.#refused(this.#flight!, error);

  constructor(options: JournalWriterOptions) {
    this.#options = options;
    this.#head = options.head;
  }

  get head(): number {
    return this.#head;
  }

  /** Nothing is under way. */
  get idle(): boolean {
    return !this.#writing && this.#queue.length === 0 && this.#told.length === 0 && !this.#emitting;
  }

  send(writing: PendingWrite): void {
    if (this.#over) return;
    this.#queue.push(writing);
    if (!this.#writing) this.#pump();
  }

  enqueue(records: readonly NewRecord[], written: () => void, refused: (error: TapeError) => void): void {
    this.send({ records, written, refused, alone: false });
  }

  /** The same as a promise, for the driver itself. */
  append(records: readonly NewRecord[]): Promise<void> {
    return new Promise((resolve, reject) => this.enqueue(records, resolve, reject));
  }

  /** After everything before it, and by itself: every refusal is its own. */
  enqueueExclusive(records: readonly NewRecord[], written: () => void, refused: (error: TapeError) => void): void {
    this.send({ records, written, refused, alone: true });
  }

  /** The same for a step of the run, whose refusal the driver deals with. */
  appendExclusive(records: readonly NewRecord[]): Promise<void> {
    return new Promise((written, refused) => this.enqueueExclusive(records, written, refused));
  }

  /** Resolves when nothing is under way, or never once the drive is over. */
  whenIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#quiet.push(resolve));
  }

  /** Resolves when the append in flight has an answer, whatever it is. */
  whenAnswered(): Promise<void> {
    return this.#writing ? new Promise((resolve) => this.#whenLanded.push(resolve)) : Promise.resolve();
  }

  stop(): void {
    this.#over = true;
    this.#queue = [];
  }

  /** Callbacks, not async functions: this is the hottest path of the engine, and each of those costs three promises. */
  #pump(): void {
    this.#writing = this.#queue.length > 0 && !this.#over;
    if (!this.#writing) {
      if (this.#whenLanded.length > 0) for (const resolve of this.#whenLanded.splice(0)) resolve();
      this.#tellIdle();
      return;
    }
    if (this.#queue.length === 1) {
      const batch = this.#queue;
      this.#queue = [];
      this.#append(batch, this.#pumpOn);
      return;
    }
    const together = this.#queue.findIndex(({ alone }) => alone);
    const most = Math.min(maxBatchedWrites, together < 0 ? this.#queue.length : Math.max(1, together));
    this.#append(this.#queue.splice(0, most), this.#pumpOn);
  }

  #append(batch: readonly PendingWrite[], next: () => void): void {
    const { door, fence, assertHeld } = this.#options;
    const records = batch.length === 1 ? batch[0]!.records : batch.flatMap((writing) => writing.records);
    this.#flight = { batch, records, next };
    let appended: Promise<Appended>;
    try {
      assertHeld();
      appended = door.append(fence, { after: this.#head, records });
    } catch (error) {
      this.#refused(this.#flight, error);
      return;
    }
    appended.then(this.#landOn, this.#refuseOn);
  }

  #land({ head, notes }: Appended): void {
    const flight = this.#flight!;
    this.#head = head;
    try {
      if (!this.#over) this.#written(flight, notes);
      flight.next();
    } catch (error) {
      this.#refused(flight, error);
    }
  }

  #written({ batch, records }: InFlightAppend, notes: number): void {
    for (const writing of batch) this.#tell(writing);
    this.#options.onWritten(records, this.#head);
    this.#options.onNotes(notes);
  }

  #refused({ batch, next }: InFlightAppend, error: unknown): void {
    const [first, ...others] = batch;
    const known =
      isTapeError(error) && (writeErrors.includes(error.code) || (first!.alone && runErrors.includes(error.code)));
    if (this.#over) next();
    else if (!known) {
      this.stop();
      this.#options.onLost(error);
      next();
    } else if (others.length > 0) {
      this.#oneByOne(batch, 0, next); // one bad write harms no other
    } else {
      this.#tell({ written: () => first!.refused(error) });
      next();
    }
  }

  #oneByOne(batch: readonly PendingWrite[], k: number, next: () => void): void {
    if (k === batch.length || this.#over) next();
    else this.#append([batch[k]!], () => this.#oneByOne(batch, k + 1, next));
  }

  /** Tells at once if nothing was told in this turn; else when the code has come to rest. */
  #tell(writing: Pick<PendingWrite, "written">): void {
    this.#told.push(writing);
    if (!this.#emitting) this.#tellNext();
  }

  #tellNext(): void {
    if (this.#over) return;
    const writing = this.#told.shift();
    this.#emitting = writing !== undefined;
    if (writing === undefined) {
      this.#tellIdle();
      return;
    }
    writing.written();
    this.#options.clock.immediate(this.#tellOn);
  }

  #tellIdle(): void {
    if (this.#over || !this.idle) return;
    if (this.#quiet.length > 0) for (const resolve of this.#quiet.splice(0)) resolve();
    this.#options.onIdle();
  }
}

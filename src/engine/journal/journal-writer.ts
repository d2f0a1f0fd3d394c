import type { Clock } from "../../base/clock.ts";
import { type ErrorCode, isTapeError, type TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { NewRecord } from "../../model/records.ts";

/** The part of a store that appends records. */
export interface JournalAppender {
  /** undefined: nothing was written, and the writer knows why. */
  append(
    fence: Fence,
    entry: { after: number; records: readonly NewRecord[]; begins?: number },
  ): Promise<AppendOutcome | undefined>;
}

export interface AppendOutcome {
  readonly head: number;
  readonly notes: number;
}

/** Records that are written together, and the callbacks for the result. */
export interface PendingWrite {
  /** Of a write with its own appender: complete once that has resolved. */
  readonly records: readonly NewRecord[];
  /** AppendOutcome alone, so that every error belongs to it. */
  readonly exclusive: boolean;
  /** Called in journal order; microtasks are drained between two calls. */
  written(): void;
  refused(error: TapeError): void;
  /** Appends in place of the store, in a transaction of its own, which decides what the records are. */
  readonly appender?: JournalAppender;
  /** The drive is over, and the write is not tried. */
  dropped?(): void;
}

/** An append in flight. */
interface InFlightAppend {
  readonly batch: readonly PendingWrite[];
  readonly records: readonly NewRecord[];
  readonly next: () => void;
}

export interface JournalWriterOptions {
  readonly appender: JournalAppender;
  readonly fence: Fence;
  readonly clock: Clock;
  readonly head: number;
  /** The first record of the run's current generation. */
  readonly begins: number;
  /** Throws when the lease can no longer be trusted: then nothing is sent. */
  readonly assertHeld: () => void;
  readonly onNotes: (notes: number) => void;
  readonly onWritten: (records: readonly NewRecord[], head: number) => void;
  /** Everything is written and delivered. */
  readonly onIdle: () => void;
  /** The term is over, or the result of an append is unknown: nothing more may be written. */
  readonly onLost: (error: unknown) => void;
}

/** Errors that concern one write alone; all others end the drive. */
const writeErrors: readonly ErrorCode[] = [
  "TAPE_BUSINESS_KEY_TAKEN",
  "TAPE_BUDGET_EXCEEDED",
  "TAPE_VERSION_CONFLICT",
  "TAPE_RUN_CONFLICT",
  "TAPE_RUN_GONE",
  "TAPE_QUOTA",
  "TAPE_QUEUE_UNKNOWN",
  "TAPE_QUEUE_NESTED",
  "TAPE_TOO_LARGE",
  "TAPE_NOT_ENCODABLE",
  "TAPE_BAD_INPUT",
];
/** Errors of a status change of the run, which the driver handles. */
const runErrors: readonly ErrorCode[] = ["TAPE_NOTES_PENDING", "TAPE_RUN_UNSETTLED", "TAPE_ILLEGAL_TRANSITION"];
/** How many writes that were queued during an append go into the next one. */
const maxBatchedWrites = 64;

/**
 * Writes one run's journal. One append is in flight; later records are batched into the next. Results are delivered one
 * at a time, in journal order, with microtasks drained in between: exactly as replay delivers them.
 */
export class JournalWriter {
  readonly #options: JournalWriterOptions;
  #head: number;
  #queue: PendingWrite[] = [];
  /** An append is in flight. */
  #writing = false;
  #whenLanded: (() => void)[] = [];
  #emitting = false;
  #undelivered: Pick<PendingWrite, "written">[] = [];
  #over = false;
  #whenIdle: (() => void)[] = [];
  #flight: InFlightAppend | undefined;
  readonly #generation: { readonly begins: number } | undefined;
  // Created once per journal, not per write: this is the hottest path of the engine.
  readonly #pumpOn = (): void => this.#pump();
  readonly #deliverOn = (): void => this.#deliverNext();
  readonly #landOn = (appended: AppendOutcome | undefined): void => this.#land(appended);
  readonly #refuseOn = (error: unknown): void => this.#refused(this.#flight!, error);

  constructor(options: JournalWriterOptions) {
    this.#options = options;
    this.#head = options.head;
    this.#generation = options.begins > 1 ? { begins: options.begins } : undefined;
  }

  get head(): number {
    return this.#head;
  }

  /** Nothing is queued, in flight or to be delivered. */
  get idle(): boolean {
    return !this.#writing && this.#queue.length === 0 && this.#undelivered.length === 0 && !this.#emitting;
  }

  /** Nothing more is written. */
  get over(): boolean {
    return this.#over;
  }

  send(write: PendingWrite): void {
    if (this.#over) {
      write.dropped?.();
      return;
    }
    this.#queue.push(write);
    if (!this.#writing) this.#pump();
  }

  enqueue(records: readonly NewRecord[], written: () => void, refused: (error: TapeError) => void): void {
    this.send({ records, written, refused, exclusive: false });
  }

  /** The same as a promise, for the driver. */
  append(records: readonly NewRecord[]): Promise<void> {
    return new Promise((resolve, reject) => this.enqueue(records, resolve, reject));
  }

  /** Appends after everything before it, and alone, so that every error belongs to it. */
  enqueueExclusive(records: readonly NewRecord[], written: () => void, refused: (error: TapeError) => void): void {
    this.send({ records, written, refused, exclusive: true });
  }

  /** The same as a promise, for a status change of the run. */
  appendExclusive(records: readonly NewRecord[]): Promise<void> {
    return new Promise((written, refused) => this.enqueueExclusive(records, written, refused));
  }

  /** Resolves when the writer is idle; never once the drive is over. */
  whenIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#whenIdle.push(resolve));
  }

  /** Resolves when the append in flight has a result or an error. */
  whenLanded(): Promise<void> {
    return this.#writing ? new Promise((resolve) => this.#whenLanded.push(resolve)) : Promise.resolve();
  }

  stop(): void {
    this.#over = true;
    for (const write of this.#queue) write.dropped?.();
    this.#queue = [];
  }

  /** Callbacks instead of async functions: this is the hottest path, and each async function costs three promises. */
  #pump(): void {
    this.#writing = this.#queue.length > 0 && !this.#over;
    if (!this.#writing) {
      if (this.#whenLanded.length > 0) for (const resolve of this.#whenLanded.splice(0)) resolve();
      this.#reportIdle();
      return;
    }
    if (this.#queue.length === 1) {
      const batch = this.#queue;
      this.#queue = [];
      this.#append(batch, this.#pumpOn);
      return;
    }
    const exclusiveAt = this.#queue.findIndex(({ exclusive }) => exclusive);
    const size = Math.min(maxBatchedWrites, exclusiveAt < 0 ? this.#queue.length : Math.max(1, exclusiveAt));
    this.#append(this.#queue.splice(0, size), this.#pumpOn);
  }

  #append(batch: readonly PendingWrite[], next: () => void): void {
    const [first] = batch;
    const { fence, assertHeld } = this.#options;
    const appender = first!.appender ?? this.#options.appender;
    const records = batch.length === 1 ? batch[0]!.records : batch.flatMap((write) => write.records);
    this.#flight = { batch, records, next };
    let appended: Promise<AppendOutcome | undefined>;
    try {
      assertHeld();
      appended = appender.append(fence, { after: this.#head, records, ...this.#generation });
    } catch (error) {
      first!.dropped?.();
      this.#refused(this.#flight, error);
      return;
    }
    appended.then(this.#landOn, this.#refuseOn);
  }

  #land(appended: AppendOutcome | undefined): void {
    const flight = this.#flight!;
    if (appended !== undefined) this.#head = appended.head;
    try {
      if (!this.#over && appended !== undefined) this.#written(flight, appended.notes);
      flight.next();
    } catch (error) {
      this.#refused(flight, error);
    }
  }

  #written({ batch, records }: InFlightAppend, notes: number): void {
    for (const write of batch) this.#deliver(write);
    this.#options.onWritten(batch[0]!.appender === undefined ? records : batch[0]!.records, this.#head);
    this.#options.onNotes(notes);
  }

  #refused({ batch, next }: InFlightAppend, error: unknown): void {
    const [first, ...others] = batch;
    const known =
      isTapeError(error) && (writeErrors.includes(error.code) || (first!.exclusive && runErrors.includes(error.code)));
    if (this.#over) next();
    else if (!known) {
      this.stop();
      this.#options.onLost(error);
      next();
    } else if (others.length > 0) {
      this.#oneByOne(batch, 0, next); // a bad write must not fail the others
    } else {
      this.#deliver({ written: () => first!.refused(error) });
      next();
    }
  }

  #oneByOne(batch: readonly PendingWrite[], k: number, next: () => void): void {
    if (k === batch.length || this.#over) next();
    else this.#append([batch[k]!], () => this.#oneByOne(batch, k + 1, next));
  }

  /** Delivers at once if nothing was delivered in this turn of the event loop; otherwise in a later one. */
  #deliver(write: Pick<PendingWrite, "written">): void {
    this.#undelivered.push(write);
    if (!this.#emitting) this.#deliverNext();
  }

  #deliverNext(): void {
    if (this.#over) return;
    const write = this.#undelivered.shift();
    this.#emitting = write !== undefined;
    if (write === undefined) {
      this.#reportIdle();
      return;
    }
    write.written();
    this.#options.clock.immediate(this.#deliverOn);
  }

  #reportIdle(): void {
    if (this.#over || !this.idle) return;
    if (this.#whenIdle.length > 0) for (const resolve of this.#whenIdle.splice(0)) resolve();
    this.#options.onIdle();
  }
}

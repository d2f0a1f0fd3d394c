import type { Span, SpanAttributes } from "../../base/trace.ts";
import type { TapeError } from "../../model/errors.ts";
import type { NewRecord } from "../../model/records.ts";
import type { ExecutionSite } from "../../sdk/current.ts";
import type { PendingWrite } from "../journal/journal-writer.ts";
import type { Delivery } from "../replay/history.ts";
import type { PendingOperation } from "../replay/replay.ts";
import { asStored, ignoreRejection, isThenable } from "../replay/stored-value.ts";
import type { DriveHandle } from "./handle.ts";

/** One durable operation: how the journal identifies it, what its record means, and how it starts live. */
export interface Operation<T> {
  /** The kinds that its first record may have. */
  readonly kinds: readonly string[];
  readonly name: string;
  readonly hash?: string;
  /** Shown where the arguments of the code differ from those in the journal. */
  readonly args?: unknown;
  /** Allowed after the run was cancelled, because it cleans up. */
  readonly evenIfCancelled?: boolean;
  /** Not refused by the end of a scope, but by the cancellation of the run. */
  readonly evenIfClosed?: boolean;
  /** What is left to do for an operation of an earlier term that the end of its scope has refused. */
  readonly abandon?: (handle: OperationHandle<T>) => void;
  /** Its body commits rows of the author: a retry of the run must not discard and repeat it. */
  readonly commits?: boolean;
  /** The result in a record; throws the error of a failed operation. */
  readonly result: (delivery: Delivery) => T | Promise<T>;
  readonly begin: (handle: OperationHandle<T>) => void;
}

/** The operation whose body is running. */
export type BodyOf = NonNullable<ExecutionSite["body"]>;

/** An operation past replay. */
export interface OperationHandle<T> extends BodyOf {
  readonly pos: number;
  /** Writes the record that ends the operation; the code gets the result once it is durable. */
  end(record: NewRecord, value: T | Promise<T>): void;
  endWithError(error: unknown, record: NewRecord): void;
  reject(error: unknown): void;
  resolve(value: T | Promise<T>): void;
  /** Aborts when the operation is refused, or the drive is over. */
  readonly abortSignal: AbortSignal;
  /** It is refused, or will be in a moment: nothing of it starts any more. */
  readonly stopped: boolean;
  /** The end of its scope has refused it. */
  readonly refused: boolean;
  /** Set while the store has something open for it: a gate, or a timer with this purpose. */
  opening: string | undefined;
  /** Set while an effect may be withdrawn: resolves once it is, or turns out to be sent. */
  withdraw: (() => Promise<void>) | undefined;
  /** The effect has its record, and is not withdrawn: it may have happened, or may yet happen. */
  sent: boolean;
  /** Adds attributes to its span, if it is traced. */
  describe(attributes: SpanAttributes): void;
}

/** Receives the end of each live operation. */
export interface OperationOwner {
  readonly drive: DriveHandle;
  /** The operation is refused as soon as the end of its scope is written, or the cancellation is delivered. */
  stops(operation: LiveOperation<unknown>): boolean;
  signalOf(operation: LiveOperation<unknown>): AbortSignal;
  done(operation: LiveOperation<unknown>): void;
  failed(error: unknown, pos: number): void;
}

/** The record that ends an operation, and the result that the code receives once it is written. */
class EndingWrite<T> implements PendingWrite {
  readonly records: readonly [NewRecord];
  readonly exclusive = false;
  readonly #handle: OperationHandle<T>;
  readonly #drive: DriveHandle;
  readonly #failed: boolean;
  readonly #result: unknown;

  /** `result`: the error of a failed operation, otherwise its value. */
  constructor(handle: OperationHandle<T>, drive: DriveHandle, record: NewRecord, failed: boolean, result: unknown) {
    this.#handle = handle;
    this.#drive = drive;
    this.records = [record];
    this.#failed = failed;
    this.#result = result;
  }

  written(): void {
    if (this.#failed) this.#handle.reject(this.#result);
    else this.#handle.resolve(this.#result as T | Promise<T>);
    this.#drive.parkIfIdle();
  }

  /** The store rejected this write alone: its error is the operation's result, and must be recorded for replay. */
  refused(refusal: TapeError): void {
    const error = asStored(refusal);
    const data = { pos: this.#handle.pos, name: nameOf(this.records[0]), error };
    this.#drive.journal.enqueue(
      [{ kind: "step.done", data }],
      () => {
        this.#handle.reject(error);
        this.#drive.parkIfIdle();
      },
      (secondError) => this.#drive.fail(secondError),
    );
  }
}

/** One object per operation instead of a closure per method: this is the hottest path of the engine. */
export class LiveOperation<T> implements OperationHandle<T>, PendingOperation {
  readonly pos: number;
  readonly promise: Promise<T>;
  /** The scope that it was requested in. */
  readonly scope: object | undefined;
  opening: string | undefined;
  withdraw: (() => Promise<void>) | undefined;
  sent = false;
  refused = false;
  readonly #operations: OperationOwner;
  readonly #operation: Operation<T>;
  #span: Span | undefined;
  #resolve!: (value: T | Promise<T>) => void;
  #reject!: (error: unknown) => void;

  constructor(operations: OperationOwner, pos: number, operation: Operation<T>, scope: object | undefined) {
    this.#operations = operations;
    this.pos = pos;
    this.scope = scope;
    this.#operation = operation;
    this.promise = new Promise<T>((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  get of(): object {
    return this.#operations.drive;
  }

  get kind(): string {
    return this.#operation.kinds[0]!;
  }

  get name(): string {
    return this.#operation.name;
  }

  get evenIfClosed(): boolean {
    return this.#operation.evenIfClosed === true;
  }

  get stopped(): boolean {
    return this.refused || this.#operations.stops(this as LiveOperation<unknown>);
  }

  get abortSignal(): AbortSignal {
    return this.scope === undefined
      ? this.#operations.drive.abortSignal
      : this.#operations.signalOf(this as LiveOperation<unknown>);
  }

  deliver(delivery: Delivery): void {
    const { kinds, name, result } = this.#operation;
    this.#operations.drive.spans?.replayed(kinds[0]!, name, this.pos, delivery.record);
    resolveWith(() => result(delivery), this);
  }

  begin(): void {
    const { drive } = this.#operations;
    // A cancellation has been read but not delivered yet: nothing starts, because it will be rejected in a moment.
    if (drive.finished) return;
    if (this.refused && !drive.cancelRequested) this.#operation.abandon?.(this);
    if (this.#operation.evenIfCancelled !== true && this.stopped) return;
    const { kinds, name } = this.#operation;
    this.#span = drive.spans?.operation(kinds[0]!, name, this.pos);
    try {
      if (this.#span === undefined) this.#operation.begin(this);
      else this.#span.run(() => this.#operation.begin(this));
    } catch (error) {
      this.reject(error);
    }
  }

  resolve(value: T | Promise<T>): void {
    this.#operations.done(this as LiveOperation<unknown>);
    if (isThenable(value)) ignoreRejection(this.promise);
    this.#span?.end();
    this.#resolve(value);
  }

  reject(error: unknown): void {
    this.#operations.done(this as LiveOperation<unknown>);
    this.#operations.failed(error, this.pos);
    this.refuse(error);
  }

  refuse(error: unknown): void {
    ignoreRejection(this.promise);
    this.#span?.fail(error);
    this.#span?.end();
    this.#reject(error);
  }

  describe(attributes: SpanAttributes): void {
    this.#span?.set(attributes);
  }

  end(record: NewRecord, value: T | Promise<T>): void {
    this.#operations.drive.journal.send(new EndingWrite(this, this.#operations.drive, record, false, value));
  }

  endWithError(error: unknown, record: NewRecord): void {
    this.#operations.drive.journal.send(new EndingWrite(this, this.#operations.drive, record, true, error));
  }
}

export function resolveWith<T>(work: () => T | Promise<T>, handle: OperationHandle<T>): void {
  try {
    handle.resolve(work());
  } catch (error) {
    handle.reject(error);
  }
}

export function nameOf(record: NewRecord): string {
  const data = record.data as { name?: string; key?: string; workflow?: string };
  return data.name ?? data.workflow ?? data.key ?? record.kind;
}

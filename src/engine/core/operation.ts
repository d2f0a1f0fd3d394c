import type { Span } from "../../base/trace.ts";
import type { TapeError } from "../../model/errors.ts";
import type { NewRecord } from "../../model/records.ts";
import type { ExecutionSite } from "../../sdk/current.ts";
import type { PendingWrite } from "../journal/journal-writer.ts";
import type { Delivery } from "../replay/history.ts";
import type { PendingOperation } from "../replay/replay.ts";
import { asStored, ignoreRejection, isThenable } from "../replay/stored-value.ts";
import type { DriveHandle } from "./handle.ts";

/** One durable operation: how it is recognised in the journal, what its record means, how it begins for real. */
export interface Operation<T> {
  /** The kinds of record it may begin with. */
  readonly kinds: readonly string[];
  readonly name: string;
  readonly hash?: string;
  /** Shown where the code asks for other arguments than the journal has. */
  readonly args?: unknown;
  /** Also after the run was cancelled: it cleans up. */
  readonly evenIfCancelled?: boolean;
  /** The result that a record holds; throws what the operation threw. */
  readonly result: (delivery: Delivery) => T | Promise<T>;
  readonly begin: (turn: OperationHandle<T>) => void;
}

/** Whose body is running. */
export type BodyOf = NonNullable<ExecutionSite["body"]>;

/** An operation that has gone live. */
export interface OperationHandle<T> extends BodyOf {
  readonly pos: number;
  /** Writes the record that ends it; the code gets the result once it is durable. */
  end(record: NewRecord, value: T | Promise<T>): void;
  endWithError(error: unknown, record: NewRecord): void;
  reject(error: unknown): void;
  resolve(value: T | Promise<T>): void;
}

/** Whom a turn tells how it went. */
export interface OperationOwner {
  readonly drive: DriveHandle;
  done(turn: LiveOperation<unknown>): void;
  failed(error: unknown, pos: number): void;
}

/** The record that ends an operation, and what the code hears once it is written. */
class EndingWrite<T> implements PendingWrite {
  readonly records: readonly [NewRecord];
  readonly alone = false;
  readonly #turn: OperationHandle<T>;
  readonly #drive: DriveHandle;
  readonly #failed: boolean;
  readonly #result: unknown;

  /** `result`: the error of an operation that failed, else its value. */
  constructor(turn: OperationHandle<T>, drive: DriveHandle, record: NewRecord, failed: boolean, result: unknown) {
    this.#turn = turn;
    this.#drive = drive;
    this.records = [record];
    this.#failed = failed;
    this.#result = result;
  }

  written(): void {
    if (this.#failed) this.#turn.reject(this.#result);
    else this.#turn.resolve(this.#result as T | Promise<T>);
    this.#drive.parkIfIdle();
  }

  /** The store refused it for a reason of its own: that is the operation's result, and replay must see it too. */
  refused(refusal: TapeError): void {
    const error = asStored(refusal);
    const data = { pos: this.#turn.pos, name: nameOf(this.records[0]), error };
    this.#drive.journal.enqueue(
      [{ kind: "step.done", data }],
      () => {
        this.#turn.reject(error);
        this.#drive.parkIfIdle();
      },
      (again) => this.#drive.fail(again),
    );
  }
}

/** One object for each operation, not a closure for each thing it can do: this is the hottest path of the engine. */
export class LiveOperation<T> implements OperationHandle<T>, PendingOperation {
  readonly pos: number;
  readonly promise: Promise<T>;
  readonly #operations: OperationOwner;
  readonly #operation: Operation<T>;
  #span: Span | undefined;
  #resolve!: (value: T | Promise<T>) => void;
  #reject!: (error: unknown) => void;

  constructor(operations: OperationOwner, pos: number, operation: Operation<T>) {
    this.#operations = operations;
    this.pos = pos;
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

  deliver(delivery: Delivery): void {
    const { kinds, name, result } = this.#operation;
    this.#operations.drive.spans?.replayed(kinds[0]!, name, this.pos);
    resolveWith(() => result(delivery), this);
  }

  begin(): void {
    const { drive } = this.#operations;
    // Between the taking of the cancellation and its being told nothing begins: it will be refused in a moment.
    if (drive.finished || (drive.cancelRequested && this.#operation.evenIfCancelled !== true)) return;
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

  end(record: NewRecord, value: T | Promise<T>): void {
    this.#operations.drive.journal.send(new EndingWrite(this, this.#operations.drive, record, false, value));
  }

  endWithError(error: unknown, record: NewRecord): void {
    this.#operations.drive.journal.send(new EndingWrite(this, this.#operations.drive, record, true, error));
  }
}

export function resolveWith<T>(work: () => T | Promise<T>, turn: OperationHandle<T>): void {
  try {
    turn.resolve(work());
  } catch (error) {
    turn.reject(error);
  }
}

export function nameOf(record: NewRecord): string {
  const data = record.data as { name?: string; key?: string; workflow?: string };
  return data.name ?? data.workflow ?? data.key ?? record.kind;
}

import { backoffMs } from "../../base/backoff.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { NewRecord } from "../../model/records.ts";
import type { StepContext } from "../../sdk/context.ts";
import { runAt } from "../../sdk/current.ts";
import { noStreams } from "../../sdk/stream.ts";
import type { StepTransaction } from "../../store/contract/store.ts";
import { BodyThrew } from "../../store/contract/transaction.ts";
import { asRecorded } from "../core/as-recorded.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { OperationHandle } from "../core/operation.ts";
import type { AppendOutcome, JournalAppender, PendingWrite } from "../journal/journal-writer.ts";
import { asStored } from "../replay/stored-value.ts";
import type { StepAttempt } from "./step-attempt.ts";

/** Other transactions were in the way, or the database was away: the step is executed again this often. */
const maxTries = 8;
const backoff = { baseMs: 20, capMs: 1_000 };

/** Runs the body of a transactional step; its rows and its record commit together, or neither does. */
export function attemptTransaction<T>(
  drive: DriveHandle,
  handle: OperationHandle<T>,
  source: unknown,
  body: (client: never, context: StepContext) => unknown,
): (attempt: StepAttempt<T>) => void {
  return (attempt) => {
    const context = withoutStreams(attempt.context);
    const call = (client: unknown): unknown => {
      attempt.assertInTime();
      return runAt({ context: drive.context, body: handle }, () => body(client as never, context));
    };
    // A drive that is lost has written nothing: the next one executes the step again.
    untilWritten(drive, handle, source, call, attempt).catch((error: unknown) => attempt.lost(error));
  };
}

async function untilWritten<T>(
  drive: DriveHandle,
  handle: OperationHandle<T>,
  source: unknown,
  body: (client: unknown) => unknown,
  attempt: StepAttempt<T>,
): Promise<void> {
  const { clock, random } = drive.options;
  for (let tries = 1; !drive.finished && !attempt.over; tries++) {
    const failure = await tryOnce(drive, handle, source, body, attempt);
    if (failure === undefined || drive.finished) break;
    if (failure instanceof BodyThrew) return attempt.threw(failure.cause);
    if (tries >= maxTries) throw failure;
    await clock.sleep(backoffMs(tries, backoff, random), drive.abortSignal);
  }
  attempt.committed(); // or the drive is over
}

/** One transaction. Returns why nothing was written; undefined: the record is written, or the drive is over. */
async function tryOnce<T>(
  drive: DriveHandle,
  handle: OperationHandle<T>,
  source: unknown,
  body: (client: unknown) => unknown,
  attempt: StepAttempt<T>,
): Promise<unknown> {
  const { store, lease } = drive.options;
  if (store.within === undefined) {
    const message = "the store is behind a server: no transaction of this process can contain its records";
    return new BodyThrew(new TapeError("TAPE_OTHER_DATABASE", message));
  }
  let transaction: StepTransaction;
  try {
    lease.assert();
    transaction = store.within.step(source, body);
    attempt.onTimeout = (error) => transaction.abort(error);
    await transaction.execute();
  } catch (error) {
    return error;
  }
  return new Promise((resolve) =>
    drive.journal.send(new TransactionWrite(drive, handle, transaction, attempt, resolve)),
  );
}

/** The commit of a step: appends the record of its result inside the transaction that has its rows. */
class TransactionWrite<T> implements PendingWrite, JournalAppender {
  readonly exclusive = true;
  readonly appender = this;
  records: readonly NewRecord[] = [];
  readonly #drive: DriveHandle;
  readonly #handle: OperationHandle<T>;
  readonly #transaction: StepTransaction;
  readonly #attempt: StepAttempt<T>;
  /** Called at the end of the attempt, with the reason if nothing was written. */
  readonly #over: (failure?: unknown) => void;
  #value: unknown;

  constructor(
    drive: DriveHandle,
    handle: OperationHandle<T>,
    transaction: StepTransaction,
    attempt: StepAttempt<T>,
    over: (failure?: unknown) => void,
  ) {
    this.#drive = drive;
    this.#handle = handle;
    this.#transaction = transaction;
    this.#attempt = attempt;
    this.#over = (failure) => {
      attempt.release();
      over(failure);
    };
  }

  async append(
    fence: Fence,
    { after, begins }: { readonly after: number; readonly begins?: number },
  ): Promise<AppendOutcome | undefined> {
    if (!this.#attempt.hold()) {
      this.#over(); // it timed out before its turn, and is rolled back
      return undefined;
    }
    try {
      const appended = await this.#transaction.commit(fence, after, (value) => this.#record(value), begins);
      if (this.#drive.finished) this.#over();
      return appended;
    } catch (error) {
      if (error instanceof BodyThrew || isPassing(error)) {
        this.#over(error);
        return undefined;
      }
      if (!isTapeError(error) || this.#drive.finished) this.#over();
      throw error;
    }
  }

  #record(value: unknown): NewRecord {
    const { pos, name } = this.#handle;
    this.#value = asRecorded(this.#drive, "step.done", "value", asStored(value));
    const record: NewRecord = { kind: "step.done", data: { pos, name, value: this.#value, transaction: true } };
    this.records = [record];
    return record;
  }

  written(): void {
    this.#handle.resolve(this.#value as T);
    this.#attempt.committed();
    this.#over();
  }

  /** The store rejected the record of the result, and with it the rows. */
  refused(error: TapeError): void {
    this.#over(new BodyThrew(error));
  }

  dropped(): void {
    void this.#transaction.rollback().finally(() => this.#over());
  }
}

/** Nothing was written, and the step may be executed again. */
const isPassing = (error: unknown): boolean =>
  isTapeError(error, "TAPE_STORE_BUSY") || isTapeError(error, "TAPE_STORE_UNREACHABLE");

/** Its record commits with the caller's rows: chunks could not be stored before it without a second connection. */
function withoutStreams(context: StepContext): StepContext {
  return {
    get abortSignal() {
      return context.abortSignal;
    },
    attempt: context.attempt,
    get last() {
      return context.last;
    },
    stream: () => {
      throw noStreams("a transaction");
    },
  };
}

import { backoffMs } from "../../base/backoff.ts";
import { tameThrown } from "../../base/thrown.ts";
import { isTapeError, TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { NewRecord } from "../../model/records.ts";
import { runAt } from "../../sdk/current.ts";
import type { StepTransaction } from "../../store/contract/store.ts";
import { BodyThrew } from "../../store/contract/transaction.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { OperationHandle } from "../core/operation.ts";
import { reportThrown } from "../core/report.ts";
import type { AppendOutcome, JournalAppender, PendingWrite } from "../journal/journal-writer.ts";
import { asStored, toStoredError } from "../replay/stored-value.ts";

/** Other transactions were in the way, or the database was away: the step is executed again this often. */
const maxTries = 8;
const backoff = { baseMs: 20, capMs: 1_000 };

/** Runs the body of a transactional step; its rows and its record commit together, or neither does. */
export function runTransaction<T>(
  drive: DriveHandle,
  handle: OperationHandle<T>,
  source: unknown,
  body: (client: unknown) => unknown,
): void {
  drive.activeBodies++;
  const over = (): void => {
    drive.activeBodies--;
    drive.parkIfIdle();
  };
  void untilWritten(drive, handle, source, body).then(over, (error: unknown) => {
    over();
    drive.fail(error); // nothing was written: the next drive executes the step again
  });
}

async function untilWritten<T>(
  drive: DriveHandle,
  handle: OperationHandle<T>,
  source: unknown,
  body: (client: unknown) => unknown,
): Promise<void> {
  const { clock, random } = drive.options;
  const call = (client: unknown) => runAt({ context: drive.context, body: handle }, () => body(client));
  for (let tries = 1; !drive.finished; tries++) {
    const failure = await attempt(drive, handle, source, call);
    if (failure === undefined || drive.finished) return;
    if (failure instanceof BodyThrew) return fail(drive, handle, failure.cause);
    if (tries >= maxTries) throw failure;
    await clock.sleep(backoffMs(tries, backoff, random), drive.abortSignal);
  }
}

/** One transaction. Returns why nothing was written; undefined: the record is written, or the drive is over. */
async function attempt<T>(
  drive: DriveHandle,
  handle: OperationHandle<T>,
  source: unknown,
  body: (client: unknown) => unknown,
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
    await transaction.execute();
  } catch (error) {
    return error;
  }
  return new Promise((resolve) => drive.journal.send(new TransactionWrite(drive, handle, transaction, resolve)));
}

function fail<T>(drive: DriveHandle, handle: OperationHandle<T>, thrown: unknown): void {
  const tame = tameThrown(thrown);
  const error = toStoredError(tame);
  reportThrown(drive, handle, tame);
  const { pos, name } = handle;
  handle.endWithError(error, { kind: "step.done", data: { pos, name, error } });
}

/** The commit of a step: appends the record of its result inside the transaction that has its rows. */
class TransactionWrite<T> implements PendingWrite, JournalAppender {
  readonly exclusive = true;
  readonly appender = this;
  records: readonly NewRecord[] = [];
  readonly #drive: DriveHandle;
  readonly #handle: OperationHandle<T>;
  readonly #transaction: StepTransaction;
  /** Called at the end of the attempt, with the reason if nothing was written. */
  readonly #over: (failure?: unknown) => void;
  #value: unknown;

  constructor(
    drive: DriveHandle,
    handle: OperationHandle<T>,
    transaction: StepTransaction,
    over: (failure?: unknown) => void,
  ) {
    this.#drive = drive;
    this.#handle = handle;
    this.#transaction = transaction;
    this.#over = over;
  }

  async append(fence: Fence, { after }: { readonly after: number }): Promise<AppendOutcome | undefined> {
    try {
      const appended = await this.#transaction.commit(fence, after, (value) => this.#record(value));
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
    this.#value = asStored(value);
    const record: NewRecord = { kind: "step.done", data: { pos, name, value: this.#value, transaction: true } };
    this.records = [record];
    return record;
  }

  written(): void {
    this.#handle.resolve(this.#value as T);
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

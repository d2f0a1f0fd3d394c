import type { Awaitable } from "../../base/chain.ts";
import type { Fence } from "../../model/fence.ts";
import type { NewRecord } from "../../model/records.ts";
import type { AppendResult } from "./fenced.ts";
import type { CreateResult, IntakeOps, RunSpec } from "./intake.ts";

/**
 * Writes inside a transaction of the caller, on the caller's own connection to the store's database. They commit and
 * roll back with the caller's rows. A rejected call has written nothing, and the transaction may continue.
 *
 * Before the first write each call checks the connection. TAPE_NO_TRANSACTION: it is not in a transaction that can
 * write. TAPE_OTHER_DATABASE: it does not lead to the database of this store.
 */
export interface TransactionOps {
  /** Creates a run without a first term: no process may hold a run that does not exist yet. */
  createRun(transaction: unknown, tenant: string, spec: RunSpec): Promise<CreateResult>;
  /** Sends a signal inside the caller's transaction. */
  signal(
    transaction: unknown,
    tenant: string,
    run: string,
    signal: Parameters<IntakeOps["signal"]>[2],
  ): ReturnType<IntakeOps["signal"]>;
  /** The transaction of one step. `source`: a pool of `pg`, or a database of `node:sqlite`. */
  step(source: unknown, body: (client: unknown) => unknown): StepTransaction;
}

/**
 * The transaction of one step: the rows of its body and its record, under the run's fence. Errors:
 *
 *   BodyThrew                                    the body or its constraints failed; nothing was written
 *   TAPE_STORE_BUSY, TAPE_STORE_UNREACHABLE      nothing was written; the step may be executed again
 *   TAPE_OUTCOME_UNKNOWN                         the response to the commit is lost, and the store cannot be asked
 *   any other                                    the append was rejected; nothing was written
 */
export interface StepTransaction {
  /** Runs the body, if a transaction of this store may stay open while other records are appended. */
  execute(): Promise<void>;
  /**
   * Runs the body if that has not happened yet, appends the record of its result and commits both. On SQLite the
   * transaction cannot wait for a promise of the record. `begins` as in an append.
   */
  commit(
    fence: Fence,
    after: number,
    recordOf: (value: unknown) => Awaitable<NewRecord>,
    begins?: number,
  ): Promise<AppendResult>;
  /** Ends the transaction, if it is open, without a trace. */
  rollback(): Promise<unknown>;
  /** The same while the body may still run: its connection is closed. Not during a commit. */
  abort(error: Error): void;
}

/** The body of a step failed, and its transaction was rolled back. */
export class BodyThrew extends Error {
  constructor(cause: unknown) {
    super("the body of a step failed", { cause });
  }
}

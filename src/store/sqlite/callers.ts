import type { DatabaseSync } from "node:sqlite";
import type { Awaitable } from "../../base/chain.ts";
import type { Clock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { Limits } from "../../model/limits.ts";
import type { NewRecord } from "../../model/records.ts";
import type { AppendResult, StepTransaction } from "../contract/store.ts";
import { BodyThrew } from "../contract/transaction.ts";
import type { CallerTransactions } from "../sql/backend.ts";
import { type Plan, type PlanContext, runPlan } from "../sql/plan.ts";
import { appendOncePlan } from "../sql/plans/append.ts";
import { PartitionDeltas, withPartitions } from "../sql/plans/partitions.ts";
import { checkEntry } from "../validate/entry.ts";
import type { WakeHub } from "../wake-hub.ts";
import type { Committer } from "./committer.ts";
import { isBusy } from "./database.ts";
import { type Identity, identityOf, isSame } from "./file.ts";
import { Statements, type Times } from "./statements.ts";

export interface SqliteCallersOptions {
  /** Has the store's own connection. */
  readonly committer: Pick<Committer, "db" | "statements">;
  /** undefined: the store is in memory, and only its own connection leads to it. */
  readonly file: Identity | undefined;
  readonly durable: boolean;
  readonly limits: Limits;
  readonly clock: Clock;
  readonly busyMs: number;
  readonly times: () => Times;
  readonly wakes: Pick<WakeHub, "emit">;
  /** Forgets what the store remembers of the file. */
  readonly forget: () => void;
}

/** How long to wait before the file is tried again. */
const retryMs = 5;

/**
 * Writes inside transactions of the caller's own connection to the store's file. SQLite has one writer: until the caller
 * commits, every other write waits, the store's own included. The store notices the commit by the file's version counter
 * and then trusts nothing that it remembers (see HeadCache).
 */
export class SqliteCallers implements CallerTransactions {
  readonly #options: SqliteCallersOptions;
  readonly #prepared = new WeakMap<DatabaseSync, Statements>();

  constructor(options: SqliteCallersOptions) {
    this.#options = options;
  }

  /** Runs in the turn of the event loop in which it is called: the caller may commit in the same one. */
  async run<T>(transaction: unknown, make: (context: PlanContext) => Plan<T>): Promise<T> {
    const db = databaseOf(transaction, "transaction");
    const statements = this.#statementsOf(db);
    if (!db.isTransaction) throw noTransaction("run BEGIN IMMEDIATE first");
    try {
      statements.savepoint();
    } catch (error) {
      throw faultOf(error);
    }
    try {
      const value = this.#perform(statements, make);
      statements.release();
      return value;
    } catch (error) {
      rollBackTo(db, statements);
      throw faultOf(error);
    } finally {
      this.#options.forget();
    }
  }

  step(source: unknown, body: (client: unknown) => unknown): StepTransaction {
    return {
      // The file has one writer: a body that ran before the journal's turn would block the append that it waits for.
      execute: async () => {},
      commit: async (fence, after, recordOf, begins = 1) => {
        const db = await this.#begin(source);
        try {
          return this.#commit(db, body, fence, { after, begins }, recordOf);
        } finally {
          this.#options.forget();
        }
      },
      rollback: async () => {},
      abort: () => {}, // the body runs within the commit
    };
  }

  /** Waits for other writers of the file, with the event loop free. */
  async #begin(source: unknown): Promise<DatabaseSync> {
    const { clock, busyMs } = this.#options;
    const db = this.#checked(() => databaseOf(source, "database"));
    const statements = this.#checked(() => this.#statementsOf(db));
    const until = clock.mono() + busyMs;
    for (;;) {
      try {
        statements.begin();
        return db;
      } catch (error) {
        if (!isBusy(error) && db.isTransaction)
          throw new BodyThrew(noTransaction("the database has an open transaction of its own"));
        if (!isBusy(error) || clock.mono() >= until) throw faultOf(error);
        await clock.sleep(retryMs);
      }
    }
  }

  /** A wrong argument fails the step, as an error of its body does. */
  #checked<T>(work: () => T): T {
    try {
      return work();
    } catch (error) {
      throw new BodyThrew(error);
    }
  }

  #commit(
    db: DatabaseSync,
    body: (client: unknown) => unknown,
    fence: Fence,
    at: { readonly after: number; readonly begins: number },
    recordOf: (value: unknown) => Awaitable<NewRecord>,
  ): AppendResult {
    const statements = this.#statementsOf(db);
    let appended: AppendResult;
    try {
      const value = call(db, body);
      const record = recordOf(value);
      if (record instanceof Promise) throw new BodyThrew(waitingCodec(record));
      const entry = checkEntry({ ...at, records: [record] }, this.#options.limits);
      appended = this.#perform(statements, (context) => appendOncePlan(context, fence, entry));
    } catch (error) {
      abandon(db);
      throw error instanceof BodyThrew ? error : faultOf(error);
    }
    try {
      statements.commit();
    } catch (error) {
      abandon(db);
      if (!this.#landed(db, fence, at.after + 1, error))
        throw isConstraint(error) ? new BodyThrew(error) : faultOf(error);
    }
    return appended;
  }

  /** COMMIT failed, which does not mean that nothing was committed: the file shows it. */
  #landed(db: DatabaseSync, { journal, token }: Fence, seq: number, cause: unknown): boolean {
    const message = "the commit failed, and the file could not be read to check whether it was written";
    try {
      if (db.isTransaction) throw cause;
      const { committer, times } = this.#options;
      const page = committer.statements.run("journal.page", { journal, from: seq, limit: 1, tenant: null }, times());
      return page.rows[0]?.token === String(token);
    } catch {
      throw new TapeError("TAPE_OUTCOME_UNKNOWN", message, {}, cause);
    }
  }

  #perform<T>(statements: Statements, make: (context: PlanContext) => Plan<T>): T {
    const { limits, times, clock, wakes } = this.#options;
    const now = times();
    const partitions = new PartitionDeltas();
    const context: PlanContext = {
      limits,
      partitions,
      locksRelease: false,
      // Of the transaction's own: after a rollback the number is free again, and no process remembers it.
      allocate: () => Number(statements.run("journals.block", { size: 1 }, now).rows[0]?.first),
      // If the caller commits later, the watch of the file's version counter wakes this process, as it does others.
      wake: (hint) => clock.immediate(() => wakes.emit(hint)),
    };
    return runPlan(withPartitions(make(context), partitions), (query) =>
      statements.perform(query.sql, query.params, now),
    );
  }

  /** Throws unless the database is the store's file, and keeps what it acknowledges. */
  #statementsOf(db: DatabaseSync): Statements {
    const { committer, file, durable } = this.#options;
    const { db: own, statements: ownStatements } = committer; // throws once the store is closed
    if (db === own) return ownStatements;
    const known = this.#prepared.get(db);
    if (known !== undefined) return known;
    const main = db
      .prepare("pragma database_list")
      .all()
      .find(({ name }) => name === "main");
    const path = String(main?.file ?? "");
    if (file === undefined || path === "" || !isSame(identityOf(path), file)) throw otherDatabase(path, file);
    const { synchronous } = db.prepare("pragma synchronous").get() as { synchronous: number };
    if (durable && synchronous < 2) {
      const message = "the connection may lose what it commits: run pragma synchronous = full";
      throw new TapeError("TAPE_STORE_NOT_DURABLE", message, { setting: "synchronous" });
    }
    const statements = new Statements(db);
    this.#prepared.set(db, statements);
    return statements;
  }
}

function waitingCodec(record: Promise<unknown>): TapeError {
  record.catch(() => {});
  const message = "a transaction on SQLite cannot wait: its payload codec must return without a promise";
  return new TapeError("TAPE_BAD_INPUT", message, { field: "codec" });
}

/** A database of node:sqlite: other drivers bind and return values differently. */
function databaseOf(value: unknown, field: string): DatabaseSync {
  const { isTransaction, prepare, exec } = (value ?? {}) as Partial<DatabaseSync>;
  if (typeof prepare === "function" && typeof exec === "function" && typeof isTransaction === "boolean") {
    return value as DatabaseSync;
  }
  const message = `${field} is an open DatabaseSync of node:sqlite, because the store is a SQLite file`;
  throw new TapeError("TAPE_BAD_INPUT", message, { field });
}

function call(db: DatabaseSync, body: (client: unknown) => unknown): unknown {
  let value: unknown;
  try {
    value = body(db);
  } catch (error) {
    throw new BodyThrew(error);
  }
  if (typeof (value as { then?: unknown } | null)?.then === "function") {
    (value as Promise<unknown>).then(undefined, () => {}); // its rejection has no other receiver
    const message = "on SQLite the body of a transaction is synchronous: all writers of the file wait for it";
    throw new BodyThrew(new TapeError("TAPE_BAD_INPUT", message, { field: "body" }));
  }
  if (!db.isTransaction) throw new BodyThrew(noTransaction("the body has ended its transaction"));
  return value;
}

function rollBackTo(db: DatabaseSync, statements: Statements): void {
  if (!db.isTransaction) return; // SQLite has rolled back the whole transaction
  statements.rollbackTo();
  statements.release();
}

/** On a broken connection it fails, and the transaction cannot commit any more. */
function abandon(db: DatabaseSync): void {
  try {
    if (db.isTransaction) db.exec("rollback");
  } catch {}
}

const isConstraint = (error: unknown): boolean => (((error as { errcode?: number }).errcode ?? 0) & 0xff) === 19;

const noTransaction = (how: string): TapeError => new TapeError("TAPE_NO_TRANSACTION", how, { field: "transaction" });

function otherDatabase(path: string, file: Identity | undefined): TapeError {
  const own = file?.path ?? "in memory, where no other connection reaches it";
  return new TapeError("TAPE_OTHER_DATABASE", `the connection has ${path || "no file"} open, the store is ${own}`, {
    file: path,
  });
}

function faultOf(error: unknown): unknown {
  if (error instanceof TapeError) return error;
  if (isBusy(error)) {
    const message = "another connection is writing to the file: start the transaction with BEGIN IMMEDIATE";
    return new TapeError("TAPE_STORE_BUSY", `nothing was written: ${message}`, {}, error);
  }
  return new TapeError("TAPE_STORE_UNREACHABLE", `nothing was written: ${(error as Error).message}`, {}, error);
}

import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";
import { sqlFiles } from "../sql/files.ts";
import {
  type AppliedMigration,
  appliedOf,
  loadMigrations,
  type Migration,
  newestOf,
  pendingMigrations,
} from "../sql/migrations.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import type { SpannerTransaction } from "./client.ts";
import type { Connections } from "./connections.ts";
import { faultOf } from "./errors.ts";

export const migrations = loadMigrations(sqlFiles(new URL("migrations/", import.meta.url)));

export interface MigrateOptions {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly log: Log;
  /** The rows of a new store, in the transaction of the last migration. */
  readonly create: (transaction: SpannerTransaction) => Promise<void>;
  readonly known?: readonly Migration[];
}

/**
 * Brings the schema up to date and returns its version. A schema change is no transaction: killed at any statement, the
 * file is run again, and two processes may run it at once. So each statement says `if not exists`.
 */
export async function migrate({
  connections,
  clock,
  log,
  create,
  known = migrations,
}: MigrateOptions): Promise<number> {
  const pending = pendingMigrations(known, await applied(connections));
  for (const { number, name, checksum, steps } of pending) {
    log("info", "store.migrating", { migration: name });
    await changeSchema(
      connections,
      clock,
      steps.map(({ text }) => text),
    );
    const [transaction] = await connections.database.getTransaction();
    try {
      await connections.perform(transaction, { sql: "migrations.add", params: { number, name, checksum } });
      if (number === newestOf(known)) await create(transaction);
      await transaction.commit();
    } catch (error) {
      transaction.end();
      // Another process opens the store, too: what it has committed is what this one would.
      if ((await applied(connections)).every((done) => done.number !== number)) throw error;
    }
    log("info", "store.migrated", { migration: name });
  }
  return newestOf(known);
}

async function applied(connections: Connections): Promise<AppliedMigration[]> {
  try {
    const { rows } = await connections.read({ sql: "migrations.list", params: {} });
    return appliedOf(rows as readonly RowOf<"migrations.list">[]);
  } catch (error) {
    if (error instanceof TapeError) throw error;
    // INVALID_ARGUMENT: the table does not exist yet.
    if ((error as { code?: number }).code === 3 && /not found/i.test((error as Error).message)) return [];
    throw faultOf(error);
  }
}

const concurrentChange = /concurrent schema change/i;

async function changeSchema(connections: Connections, clock: Clock, statements: readonly string[]): Promise<void> {
  for (;;) {
    try {
      const [operation] = await connections.database.updateSchema(statements);
      await operation.promise();
      return;
    } catch (error) {
      if (!concurrentChange.test((error as Error).message)) throw faultOf(error);
      await clock.sleep(200);
    }
  }
}

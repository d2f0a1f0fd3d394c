import { sqlFiles } from "../store/sql/files.ts";
import { loadStatements } from "../store/sql/statements.ts";
import {
  assertHolder,
  type LeaseHolder,
  refuseOutsideTransaction,
  refuseStale,
  scopeOf,
  type TokenHolder,
} from "./token-holder.ts";

/** The part of a database that a guard needs; `node:sqlite`'s and `better-sqlite3`'s have it. */
export interface SqliteDatabase {
  /** Prepares a statement. */
  prepare(sql: string): { get(...values: (string | number | bigint)[]): unknown };
  /** Executes statements without results. */
  exec(sql: string): unknown;
  /** node:sqlite */
  readonly isTransaction?: boolean;
  /** better-sqlite3 */
  readonly inTransaction?: boolean;
}

const statements = loadStatements(sqlFiles(new URL("sql/sqlite/", import.meta.url)), (position) => `?${position}`);

function run(
  database: SqliteDatabase,
  name: string,
  params: Readonly<Record<string, string | number | bigint>>,
): Readonly<Record<string, unknown>> | undefined {
  const { text, params: names } = statements.get(name)!;
  const row = database.prepare(text).get(...names.map((param) => params[param]!));
  return row as Readonly<Record<string, unknown>> | undefined;
}

function assertInTransaction(database: SqliteDatabase): void {
  if (database.isTransaction !== true && database.inTransaction !== true)
    refuseOutsideTransaction("run BEGIN IMMEDIATE first");
}

/**
 * Guards the writes of your own transaction in the store's file. Throws TAPE_FENCED unless the holder has the lease at
 * this moment. No other process can take the lease over before the transaction ends.
 *
 * @example
 * database.exec("begin immediate");
 * guardSqlite(database, lease);
 * database.prepare("update accounts set balance = ? where id = 1").run(balance);
 * database.exec("commit");
 */
export function guardSqlite(database: SqliteDatabase, holder: LeaseHolder): void {
  assertHolder(holder);
  assertInTransaction(database);
  const { tenant, journal, token, nonce } = holder.fence;
  if (run(database, "row", { tenant, journal, token, nonce }) === undefined) refuseStale(scopeOf(holder), holder.token);
}

/**
 * Guards your own transaction in a SQLite file that is not the store's. Throws TAPE_FENCED for a token lower than the
 * highest seen. Creates its table if it does not exist.
 *
 * @example
 * database.exec("begin immediate");
 * guardExternalSqlite(database, lease);
 * database.exec("commit");
 */
export function guardExternalSqlite(database: SqliteDatabase, holder: TokenHolder): void {
  assertHolder(holder);
  assertInTransaction(database);
  database.exec(statements.get("create")!.text);
  const scope = scopeOf(holder);
  const highest = BigInt(run(database, "raise", { scope, token: holder.token })?.token as string);
  if (highest > holder.token) refuseStale(scope, holder.token, highest);
}

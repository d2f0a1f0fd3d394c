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

/** What a guard needs of a database: `node:sqlite`'s and `better-sqlite3`'s have it. */
export interface SqliteDatabase {
  prepare(sql: string): { get(...values: (string | number | bigint)[]): unknown };
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
    refuseOutsideTransaction("say BEGIN IMMEDIATE first");
}

/**
 * Guards the writes of the user's own transaction, in the file of the store: refuses with TAPE_FENCED unless the lease is
 * this holder's at this moment. Nobody can take it over before the transaction ends.
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
 * Guards the user's own transaction in a SQLite file that is not the store's: a token lower than the highest seen is
 * refused with TAPE_FENCED. Makes its table if it is not there.
 */
export function guardExternalSqlite(database: SqliteDatabase, bearer: TokenHolder): void {
  assertHolder(bearer);
  assertInTransaction(database);
  database.exec(statements.get("create")!.text);
  const scope = scopeOf(bearer);
  const highest = BigInt(run(database, "raise", { scope, token: bearer.token })?.token as string);
  if (highest > bearer.token) refuseStale(scope, bearer.token, highest);
}

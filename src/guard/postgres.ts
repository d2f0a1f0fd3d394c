import { TapeError } from "../model/errors.ts";
import { fenceToWire } from "../model/fence.ts";
import { sqlFiles } from "../store/sql/files.ts";
import { loadStatements, type Statement } from "../store/sql/statements.ts";
import { type GuardTable, guardTable } from "./guard-table.ts";
import {
  assertHolder,
  type LeaseHolder,
  refuseOutsideTransaction,
  refuseStale,
  scopeOf,
  type TokenHolder,
} from "./token-holder.ts";

/** The part of a client that a guard needs; `pg`'s has it. It must be one connection, not a pool. */
export interface PostgresClient {
  /** Executes one statement on this connection. */
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

/** Options of {@link guardPostgres}. */
export interface GuardPostgresOptions {
  /** The store's schema. Default `tape`. */
  readonly schema?: string;
  /** How long the guarded transaction may be idle before the server ends it. Shorter than the TTL. Default 5 s. */
  readonly boundMs?: number;
}

const defaultBoundMs = 5_000;
const noTransaction = "run BEGIN on the same connection first";

const loaded = new Map<string, ReadonlyMap<string, Statement>>();

function statements(schema = "tape"): ReadonlyMap<string, Statement> {
  let found = loaded.get(schema);
  if (found === undefined) {
    found = loadStatements(sqlFiles(new URL("sql/postgres/", import.meta.url)), (position) => `$${position}`, schema);
    loaded.set(schema, found);
  }
  return found;
}

async function run(
  client: PostgresClient,
  name: string,
  params: Readonly<Record<string, unknown>>,
  schema?: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const { text, params: names } = statements(schema).get(name)!;
  const values = names.map((param) => (typeof params[param] === "bigint" ? String(params[param]) : params[param]));
  const { rows } = await client.query(text, values);
  return rows[0] as Readonly<Record<string, unknown>> | undefined;
}

/** The mark lasts for the transaction. If the next statement does not find it, there is no transaction. */
async function assertInTransaction(client: PostgresClient, mark: string): Promise<void> {
  const row = await run(client, "mark", {});
  if (row?.mark !== mark) refuseOutsideTransaction(noTransaction);
}

/**
 * Guards the writes of your own transaction in the store's database. Throws TAPE_FENCED unless the holder has the lease
 * at this moment, and makes a takeover wait until the transaction ends.
 *
 * @example
 * await client.query("begin");
 * await guardPostgres(client, lease);
 * await client.query("update accounts set balance = $1 where id = 1", [balance]);
 * await client.query("commit");
 */
export async function guardPostgres(
  client: PostgresClient,
  holder: LeaseHolder,
  options: GuardPostgresOptions = {},
): Promise<void> {
  assertHolder(holder);
  const { boundMs = defaultBoundMs, schema } = options;
  if (!Number.isSafeInteger(boundMs) || boundMs < 1) {
    throw new TapeError("TAPE_BAD_INPUT", "boundMs must be a whole number of milliseconds", { field: "boundMs" });
  }
  const mark = fenceToWire(holder.fence);
  const { tenant, journal, token, nonce } = holder.fence;
  const row = await run(client, "row", { tenant, journal, token, nonce, mark, boundMs }, schema);
  if (row === undefined) refuseStale(scopeOf(holder), holder.token);
  await assertInTransaction(client, mark);
}

/**
 * Creates the table that {@link guardExternalPostgres} needs, if it does not exist.
 *
 * @example
 * await createGuardTable(client); // once for each database
 */
export async function createGuardTable(client: PostgresClient): Promise<void> {
  await run(client, "create", {});
}

/**
 * The guard table of a PostgreSQL database other than the store's.
 *
 * @example
 * const fence = new RequestFence(postgresGuardTable(client));
 */
export function postgresGuardTable(client: PostgresClient): GuardTable {
  return {
    async raise(scope, token) {
      const mark = `${token}@${scope}`;
      const row = await run(client, "raise", { scope, token, mark });
      await assertInTransaction(client, mark);
      return BigInt(row?.token as string);
    },
  };
}

/**
 * Guards your own transaction in a PostgreSQL database that is not the store's. Throws TAPE_FENCED for a token lower than
 * the highest seen.
 *
 * @example
 * await createGuardTable(client); // once
 * await client.query("begin");
 * await guardExternalPostgres(client, lease);
 * await client.query("insert into shipments values ($1)", [id]);
 * await client.query("commit");
 */
export async function guardExternalPostgres(client: PostgresClient, holder: TokenHolder): Promise<void> {
  await guardTable(postgresGuardTable(client), holder);
}

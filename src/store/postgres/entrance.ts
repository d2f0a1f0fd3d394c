import type pg from "pg";
import { TapeError } from "../../model/errors.ts";
import type { RowOf } from "../sql/statements.gen.ts";
import type { Connections } from "./connections.ts";
import { busy, classifyError, forbidden, isForbidden, unreachable } from "./errors.ts";
import { rejection } from "./writer.ts";

/** A connection of the caller. */
export type CallerClient = Pick<pg.ClientBase, "query">;

/** Checks the connections of callers before the first write there. */
export class Entrance {
  readonly #connections: Connections;
  #server: RowOf<"transaction.server"> | undefined;

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  /** Throws unless the connection is in a transaction that writes to the store's own database. */
  async enter(client: CallerClient, mark: string): Promise<void> {
    const connections = this.#connections;
    const params = { mark, boundMs: connections.settings.transactionBoundMs };
    const { rows } = await connections.performFor(client, { sql: "transaction.enter", params });
    const found = rows[0] as RowOf<"transaction.enter"> | undefined;
    if (found === undefined || !(await this.#isOurs(found))) throw this.#elsewhere(found);
    if (found.read_only === "on") throw noTransaction("the transaction is read-only");
    if (found.known !== true) throw busy(new Error("the server was promoted: roll back and try again"));
  }

  /** Where the store has several servers, the caller's pool may still lead to the former primary: that passes. */
  #elsewhere(found: RowOf<"transaction.enter"> | undefined): TapeError {
    const sameStore = found !== undefined && found.store_id === this.#server?.store_id;
    if (!sameStore || this.#connections.hosts === undefined) return otherDatabase("it has another store");
    const { server = "another one" } = this.#connections.hosts;
    return unreachable(new Error(`the connection does not lead to the writable server, which is ${server}`));
  }

  /** The server may have been restarted since its identity was read: then it is read again. */
  async #isOurs({ store_id, server }: RowOf<"transaction.enter">): Promise<boolean> {
    const matches = (own: RowOf<"transaction.server"> | undefined): boolean =>
      own !== undefined && own.store_id === store_id && own.server === server;
    if (matches(this.#server)) return true;
    this.#server = (await this.#connections.ask("transaction.server", {})).rows[0];
    return matches(this.#server);
  }
}

export const noTransaction = (why: string, cause?: unknown): TapeError =>
  new TapeError("TAPE_NO_TRANSACTION", why, { field: "transaction" }, cause);

const otherDatabase = (why: string, cause?: unknown): TapeError =>
  new TapeError("TAPE_OTHER_DATABASE", `the connection leads elsewhere: ${why}`, {}, cause);

/** What an error on the caller's connection means. Whatever it is, the call has written nothing that can commit. */
export function callerFault(error: unknown): TapeError {
  if (error instanceof TapeError) return error;
  const { code, message } = error as { code?: string; message: string };
  if (code === "25P01") return noTransaction("run BEGIN on the same connection first", error);
  if (code === "25P02") return noTransaction("a statement of the transaction has failed: roll it back", error);
  if (code === "25006") return noTransaction("the transaction is read-only", error);
  // The schema or a table, column or function of it is missing.
  if (code !== undefined && /^(3F000|42P01|42703|42883)$/.test(code)) return otherDatabase(message, error);
  if (isForbidden(error)) return forbidden(error);
  const fault = classifyError(error);
  if (fault.kind === "connection") return unreachable(error);
  return fault.kind === "refused" ? rejection(error, fault) : busy(error);
}

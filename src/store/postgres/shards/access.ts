import type pg from "pg";
import { TapeError } from "../../../model/errors.ts";
import type { QueryResult } from "../../sql/plan.ts";
import type { ParamsOf, RowOf } from "../../sql/statements.gen.ts";
import { qualify } from "../../sql/statements.ts";
import type { Connections, PostgresName } from "../connections.ts";
import { readFault } from "../errors.ts";
import type { OutageRetry } from "../outage-retry.ts";

/** The tables of a shard that the store contract does not show: identity, directory, residents. */
export class ShardAccess {
  readonly #connections: Connections;
  readonly #outageRetry: OutageRetry;

  constructor(connections: Connections, outageRetry: OutageRetry) {
    this.#connections = connections;
    this.#outageRetry = outageRetry;
  }

  get schema(): string {
    return this.#connections.settings.schema;
  }

  /** One statement that may be repeated. */
  async ask<N extends PostgresName>(name: N, params: ParamsOf<N>): Promise<QueryResult<RowOf<N>>> {
    try {
      return await this.#outageRetry.run(() => this.#connections.ask(name, params));
    } catch (error) {
      throw readFault(error);
    }
  }

  /** A connection of its own, without the bounds of ordinary transactions. It ends when the work does. */
  async session<T>(work: (session: ShardSession) => Promise<T>): Promise<T> {
    if (this.#connections.settings.pooler !== "none" && this.#connections.settings.listenUrl === undefined) {
      const message = "shards are changed over a connection to the server itself: add listen_url to its URL";
      throw new TapeError("TAPE_BAD_STORE_URL", message, { key: "listen_url" });
    }
    const client = this.#connections.directClient({ application_name: "durable-tape shards" });
    client.on("error", () => {}); // the next query reports it
    try {
      await client.connect();
      await client.query(
        "set durable_tape.mover = 'on'; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0",
      );
      return await work(new ShardSession(client, this.schema));
    } catch (error) {
      throw readFault(error);
    } finally {
      await client.end().catch(() => {}); // it is closed already
    }
  }
}

/** SQL on one connection, in which the schema is written `tape`. */
export class ShardSession {
  readonly #client: pg.Client;
  readonly #schema: string;

  constructor(client: pg.Client, schema: string) {
    this.#client = client;
    this.#schema = schema;
  }

  async rows<R extends object>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return (await this.#client.query(qualify(text, this.#schema), [...values])).rows as R[];
  }

  async transaction<T>(work: () => Promise<T>, begin = "begin"): Promise<T> {
    await this.#client.query(begin);
    try {
      const value = await work();
      await this.#client.query("commit");
      return value;
    } catch (error) {
      await this.#client.query("rollback").catch(() => {}); // a broken connection has rolled back
      throw error;
    }
  }
}

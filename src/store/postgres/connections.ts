import pg from "pg";
import { type Clock, systemClock } from "../../base/clock.ts";
import { TapeError } from "../../model/errors.ts";
import { defaultLimits } from "../../model/limits.ts";
import { sqlFiles } from "../sql/files.ts";
import type { Query, QueryResult, Row } from "../sql/plan.ts";
import type { ParamsOf, PostgresStatements, RowOf } from "../sql/statements.gen.ts";
import { loadStatements, type Statement } from "../sql/statements.ts";
import { isOutdatedPlan } from "./errors.ts";
import { boundedResult, boundedSource } from "./pages.ts";
import { Slots } from "./slots.ts";
import { type Transport, transportOf } from "./transport.ts";
import type { PostgresSettings } from "./url.ts";

/** bigint columns that fit become numbers; tokens and nonces are selected as text and never rounded. */
export const types = {
  getTypeParser(oid: number, format?: "text" | "binary") {
    if (oid !== 20) return pg.types.getTypeParser(oid, format);
    return (text: string) => {
      const value = Number(text);
      return Number.isSafeInteger(value) ? value : BigInt(text);
    };
  },
} as pg.CustomTypesConfig;

/**
 * Plans must not depend on when the tables were last analysed: index look-ups per item, generic plans, always. (A
 * sequential scan chosen on an empty table stays chosen for as long as the connection lives.) Statements of many items
 * say it themselves, too: LIMIT 1 makes a look-up no join, and `= any (array[x])` is an equality that cannot be used the
 * other way round, beginning with the whole table.
 */
const plannerSettings = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off", // loses the index's order, and with it the early end of LIMIT
  enable_sort: "off", // likewise; where the index gives the order only in part, sort part by part
  join_collapse_limit: "1", // joins in the order in which they are written: it is the order of the locks
  from_collapse_limit: "1",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
};

/**
 * After so many statements a connection makes its plans anew, and after twice as many, and so on. Whoever vacuums or
 * analyses tables while they are nearly empty tells the planner that reading all of one costs nothing; a plan made then
 * would read all of it for as long as the connection lives, however much it has grown. Made anew, it sees how large the
 * tables are.
 */
const firstReplanAfter = 32;

/**
 * Said each time, because a role or a database may have another default: under an older snapshot a takeover would not
 * see what its predecessor wrote last.
 */
const begin = "begin isolation level read committed";

type Client = Pick<pg.ClientBase, "query">;

/** Statements that PostgreSQL has. */
export type PostgresName = keyof PostgresStatements;

export function postgresStatements(schema: string): ReadonlyMap<string, Statement> {
  const files = sqlFiles(new URL("sql/", import.meta.url));
  return loadStatements(files, (position) => `$${position}`, schema, boundedSource);
}

export interface ConnectionsOptions {
  readonly clock?: Clock;
  /** How many statements may wait for a connection, and transactions for their turn. */
  readonly waiting?: number;
}

export class Connections {
  readonly settings: PostgresSettings;
  readonly #pool: pg.Pool;
  /** One for each connection: nobody ever waits inside the pool. */
  readonly #slots: Slots;
  /** For transactions that set journal numbers aside before they have a connection: no more than can have one. */
  readonly transactions: Slots;
  readonly #statements: ReadonlyMap<string, Statement>;
  readonly #lives = new WeakMap<Client, { statements: number; next: number }>();
  #transport: Transport = "local";
  /** How often the types of columns were found to be others than before. */
  #preparation = 0;

  constructor(settings: PostgresSettings, options: ConnectionsOptions = {}) {
    const { clock = systemClock, waiting = defaultLimits.pendingItems } = options;
    const bounds = { clock, waiting, slots: settings.connections, waitMs: settings.transactionBoundMs };
    this.#slots = new Slots(bounds);
    this.transactions = new Slots(bounds);
    this.settings = settings;
    this.#statements = postgresStatements(settings.schema);
    this.#pool = new pg.Pool({
      connectionString: settings.connectionString,
      max: settings.connections,
      types,
      connectionTimeoutMillis: settings.transactionBoundMs,
      // An answer that never comes is a lost answer: the witness then tells what happened.
      query_timeout: settings.transactionBoundMs + 1_000,
      idleTimeoutMillis: 30_000,
      allowExitOnIdle: true,
      application_name: "durable-tape",
      ...(settings.pooler === "none" ? { options: startupOptions(settings) } : {}),
    });
    this.#pool.on("error", () => {}); // an idle connection broke; the next query opens another
    // One that breaks while it is lent out has no listener of the pool's, and an error event without one would end the
    // process. Whoever has it learns of it from its next query.
    this.#pool.on("connect", (client) => {
      client.on("error", () => {});
      this.#transport = transportOf(client);
    });
  }

  /** Text put before a transaction's first statement; behind a pooler SET lasts only inside it. */
  begin(waitMs: number): string {
    const bound = this.settings.transactionBoundMs;
    // The time for locks counts anew for each transaction that is waited for: behind overlapping ones, each of them
    // short, it never runs out. That for the statement does.
    const waits = `set local lock_timeout = ${waitMs}; set local statement_timeout = ${waitMs}`;
    if (this.settings.pooler === "none") return waitMs === bound ? begin : `${begin}; ${waits}`;
    const pins = Object.entries(plannerSettings).map(([key, value]) => `set local ${key} = ${value}`);
    return [
      begin,
      waits,
      `set local idle_in_transaction_session_timeout = ${bound}`,
      "set local synchronous_commit = on",
      ...pins,
    ].join("; ");
  }

  statement(name: PostgresName | Query["sql"]): Statement {
    const statement = this.#statements.get(name);
    if (statement === undefined) throw new TapeError("TAPE_INVARIANT", `there is no statement ${name}`, { name });
    return statement;
  }

  /** A statement with whole numbers in place of its parameters, so that it can share a round trip with others. */
  textOf<N extends PostgresName>(name: N, numbers: ParamsOf<N> & Readonly<Record<string, bigint | number>>): string {
    const { text, params } = this.statement(name);
    return text.replace(/\$(\d+)/g, (_whole, position: string) => String(numbers[params[Number(position) - 1]!]));
  }

  /** How what we send travels: that of the newest connection. */
  get transport(): Transport {
    return this.#transport;
  }

  /** Calls `fn` whenever a connection was opened. */
  onConnect(fn: () => void): void {
    this.#pool.on("connect", fn);
  }

  /**
   * A connection, to be released. `tenant`: in whose turn, where several wait; absent: in one of the store's own.
   * TAPE_OVERLOADED: too many wait for one already (see Slots for who is entitled).
   */
  async connect(tenant?: string, entitled = false): Promise<pg.PoolClient> {
    if (!this.#slots.takeFree(tenant)) await this.#slots.take(tenant, entitled);
    try {
      const client = await this.#pool.connect();
      const release = client.release;
      client.release = (error) => {
        release(error); // throws when it is released twice: the slot is given once
        this.#slots.give(tenant);
      };
      return client;
    } catch (error) {
      this.#slots.give(tenant);
      throw error;
    }
  }

  /** One statement on a connection of its own. */
  ask<N extends PostgresName>(
    name: N,
    params: ParamsOf<N>,
    tenant?: string,
    entitled = false,
  ): Promise<QueryResult<RowOf<N>>> {
    return this.performAlone({ sql: name, params }, tenant, entitled) as Promise<QueryResult<RowOf<N>>>;
  }

  /** A query of a plan, on a connection of its own. */
  async performAlone(call: Query, tenant?: string, entitled = false): Promise<QueryResult> {
    const client = await this.connect(tenant, entitled);
    try {
      const answer = await this.perform(client, call);
      client.release();
      return answer;
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
  }

  /** Text of ours on a connection of its own. */
  async askText(text: string, values: readonly unknown[] = []): Promise<pg.QueryResult> {
    const client = await this.connect();
    try {
      const result = await client.query(text, [...values]);
      client.release();
      return result;
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
  }

  query<N extends PostgresName>(client: Client, name: N, params: ParamsOf<N>): Promise<QueryResult<RowOf<N>>> {
    return this.perform(client, { sql: name, params }) as Promise<QueryResult<RowOf<N>>>;
  }

  /** A query of a plan. */
  async perform(client: Client, { sql, params }: Query): Promise<QueryResult> {
    const statement = this.statement(sql);
    if (this.settings.pooler === "none" && this.#outgrown(client)) await client.query("discard plans");
    const values = statement.params.map((param) => {
      const value = params[param];
      // Times come as fractions of milliseconds; the columns hold whole ones, and no other numbers.
      return typeof value === "number" ? Math.floor(value) : (value ?? null);
    });
    const preparation = this.#preparation;
    let result: pg.QueryResult;
    try {
      result = await client.query(this.#configOf(statement, values));
    } catch (error) {
      if (!isOutdatedPlan(error)) throw error;
      if (preparation === this.#preparation) this.#preparation++;
      result = await this.#sendAgain(client, statement, values, error);
    }
    return boundedResult({ rows: result.rows as Row[], count: result.rowCount ?? 0 }, params.pageBytes);
  }

  /**
   * A newer version may change the type of a column while we live. What was prepared before is then refused, on each
   * connection and for ever: it is prepared again, under another name. Inside a transaction that was the end of it, and
   * its caller begins again (see faultOf).
   */
  async #sendAgain(client: Client, statement: Statement, values: unknown[], refusal: unknown): Promise<pg.QueryResult> {
    try {
      return await client.query(this.#configOf(statement, values));
    } catch {
      throw refusal; // the transaction has ended
    }
  }

  #configOf({ name, text }: Statement, values: unknown[]): pg.QueryConfig {
    if (this.settings.pooler !== "none") return { text, values };
    return { name: this.#preparation === 0 ? `tape.${name}` : `tape.${name}.${this.#preparation}`, text, values };
  }

  /** Whether the plans of this connection are to be made anew. */
  #outgrown(client: Client): boolean {
    const life = this.#lives.get(client) ?? { statements: 0, next: firstReplanAfter };
    if (life.statements === 0) this.#lives.set(client, life);
    if (++life.statements < life.next) return false;
    life.next *= 2;
    return true;
  }

  async close(): Promise<void> {
    this.#slots.close();
    this.transactions.close();
    await this.#pool.end();
  }
}

function startupOptions(settings: PostgresSettings): string {
  const bound = settings.transactionBoundMs;
  const all = {
    ...plannerSettings,
    statement_timeout: bound,
    lock_timeout: bound,
    idle_in_transaction_session_timeout: bound,
    synchronous_commit: "on",
    default_transaction_isolation: "read\\ committed",
  };
  return Object.entries(all)
    .map(([key, value]) => `-c ${key}=${value}`)
    .join(" ");
}

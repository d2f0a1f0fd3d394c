import pg from "pg";
import { type Clock, systemClock } from "../../base/clock.ts";
import { type Log, silentLog } from "../../base/log.ts";
import { TapeError } from "../../model/errors.ts";
import { defaultLimits } from "../../model/limits.ts";
import { sqlFiles } from "../sql/files.ts";
import type { Query, QueryResult, Row } from "../sql/plan.ts";
import type { ParamsOf, PostgresStatements, RowOf } from "../sql/statements.gen.ts";
import { loadStatements, qualify, type Statement } from "../sql/statements.ts";
import { Slots } from "../statement-slots.ts";
import { isOutdatedPlan } from "./errors.ts";
import type { WritableHosts } from "./hosts.ts";
import { boundedResult, boundedSource } from "./pages.ts";
import { type Transport, transportOf } from "./transport.ts";
import type { PostgresSettings } from "./url.ts";
import { clientClass, hostsOf, WritableClient } from "./writable-client.ts";

/** bigint columns become numbers if they fit; tokens and nonces are selected as text and never rounded. */
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
 * Plans must not depend on when the tables were last analysed: always index lookups per item, and generic plans. (A
 * sequential scan chosen on an empty table stays chosen for as long as the connection lives.) Multi-row statements
 * enforce it, too: LIMIT 1 turns a join into a lookup, and `= any (array[x])` is an equality that cannot be reversed to
 * start from the whole table.
 */
const plannerSettings = {
  enable_seqscan: "off",
  enable_hashjoin: "off",
  enable_mergejoin: "off",
  enable_bitmapscan: "off", // loses the order of the index, so that LIMIT cannot end early
  enable_sort: "off", // likewise; an incremental sort remains possible
  join_collapse_limit: "1", // joins in the written order, which is the order of the locks
  from_collapse_limit: "1",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
};

/**
 * A connection discards its plans after this many statements, then after twice as many, and so on. VACUUM or ANALYZE on
 * nearly empty tables suggests to the planner that full scans cost nothing. A plan made then would scan the whole table
 * for as long as the connection lives, however much it has grown. New plans see the current size.
 */
const firstReplanAfter = 32;

/**
 * Notes the timeline of a connection's server in the session. It cannot change while the server accepts writes: it
 * changes when a server leaves recovery, and nothing is noted before that. See the macro in sql/leases.sql.
 */
const noteTimeline = "select set_config('durable_tape.timeline', coalesce(tape.timeline(), ''), false)";

/**
 * Stated each time, because a role or a database may have another default: with an older snapshot a takeover would not
 * see the last writes of its predecessor.
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
  readonly log?: Log;
}

export class Connections {
  readonly settings: PostgresSettings;
  readonly #pool: pg.Pool;
  /** Absent: the URL names one server. */
  readonly hosts: WritableHosts | undefined;
  readonly #listenHosts: WritableHosts | undefined;
  /** One per connection: no caller ever waits inside the pool. */
  readonly #slots: Slots;
  /**
   * For transactions that reserve journal numbers before they have a connection: no more than there are connections.
   */
  readonly transactions: Slots;
  readonly #statements: ReadonlyMap<string, Statement>;
  readonly #planAges = new WeakMap<Client, { statements: number; next: number }>();
  readonly #noteTimeline: string;
  /** Connections that have noted the timeline of their server. */
  readonly #noted = new WeakSet<Client>();
  #transport: Transport = "local";
  /** How often the types of columns were found to have changed. */
  #preparation = 0;

  constructor(settings: PostgresSettings, options: ConnectionsOptions = {}) {
    const { clock = systemClock, waiting = defaultLimits.pendingItems, log = silentLog } = options;
    const bounds = { clock, waiting, slots: settings.connections, waitMs: settings.transactionBoundMs };
    this.#slots = new Slots(bounds);
    this.transactions = new Slots(bounds);
    this.settings = settings;
    this.#statements = postgresStatements(settings.schema);
    this.#noteTimeline = qualify(noteTimeline, settings.schema);
    this.hosts = hostsOf(settings, clock, log);
    this.#listenHosts = settings.listen && hostsOf(settings.listen, clock, silentLog);
    this.#pool = new pg.Pool({
      ...(this.hosts && { Client: clientClass(this.hosts) }),
      connectionString: settings.connectionString,
      max: settings.connections,
      types,
      connectionTimeoutMillis: settings.transactionBoundMs,
      // A response that never comes is a lost response: the witness then shows what happened.
      query_timeout: settings.transactionBoundMs + 1_000,
      idleTimeoutMillis: 30_000,
      allowExitOnIdle: true,
      application_name: "durable-tape",
      ...(settings.pooler === "none" ? { options: startupOptions(settings) } : {}),
    });
    this.#pool.on("error", () => {}); // an idle connection broke; the next query opens a new one
    // The pool does not listen to a checked-out connection, and an error event without a listener would end the
    // process. Its user gets the error from the next query.
    this.#pool.on("connect", (client) => {
      client.on("error", () => {});
      this.#transport = transportOf(client);
    });
  }

  /** Text before a transaction's first statement. Behind a pooler SET lasts only inside the transaction. */
  begin(waitMs: number): string {
    const bound = this.settings.transactionBoundMs;
    // lock_timeout restarts for each transaction that is waited for: behind overlapping short ones it never expires.
    // statement_timeout does.
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
    if (statement === undefined) throw new TapeError("TAPE_INVARIANT", `unknown statement ${name}`, { name });
    return statement;
  }

  /** A statement with whole numbers instead of parameters, so that it can share a round trip with others. */
  textOf<N extends PostgresName>(name: N, numbers: ParamsOf<N> & Readonly<Record<string, bigint | number>>): string {
    const { text, params } = this.statement(name);
    return text.replace(/\$(\d+)/g, (_whole, position: string) => String(numbers[params[Number(position) - 1]!]));
  }

  /** How the traffic of the newest connection is protected. */
  get transport(): Transport {
    return this.#transport;
  }

  /** Calls `fn` whenever a connection is opened. */
  onConnect(fn: () => void): void {
    this.#pool.on("connect", fn);
  }

  /**
   * A connection, to be released. `tenant`: whose turn it uses if several wait; absent: one of the store's own.
   * TAPE_OVERLOADED: too many are waiting already (see Slots for `entitled`).
   */
  async connect(tenant?: string, entitled = false): Promise<pg.PoolClient> {
    if (!this.#slots.takeFree(tenant)) await this.#slots.take(tenant, entitled);
    try {
      const client = this.hosts === undefined ? await this.#pool.connect() : await this.#writable(this.hosts);
      const release = client.release;
      client.release = (error) => {
        if (this.hosts !== undefined) (client as unknown as WritableClient).dropped(error);
        release(error); // throws on a second release, so that the slot is released once
        this.#slots.give(tenant);
      };
      return client;
    } catch (error) {
      this.#slots.give(tenant);
      throw error;
    }
  }

  /** The same for a write. */
  async connectToWrite(tenant?: string): Promise<pg.PoolClient> {
    const client = await this.connect(tenant);
    // Behind a pooler a session is not ours.
    if (this.settings.pooler !== "none" || this.#noted.has(client)) return client;
    try {
      await client.query(this.#noteTimeline);
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
    this.#noted.add(client);
    return client;
  }

  /** Pooled connections to a server that no longer accepts writes are dropped before they are used. */
  async #writable(hosts: WritableHosts): Promise<pg.PoolClient> {
    for (;;) {
      await hosts.find();
      const client = await this.#pool.connect();
      if ((client as unknown as WritableClient).fresh) return client;
      client.release(true);
    }
  }

  /** The hosts among which directClient chooses. */
  get directHosts(): WritableHosts | undefined {
    return this.#listenHosts ?? this.hosts;
  }

  /** A connection outside of the pool, to the server itself where the URL leads to a pooler and listen_url past it. */
  directClient(config: pg.ClientConfig): pg.Client {
    const { connectionString, listenUrl, listen } = this.settings;
    if (listen !== undefined && this.#listenHosts !== undefined)
      return new WritableClient(this.#listenHosts, { ...config, connectionString: listen.connectionString });
    if (this.hosts !== undefined) return new WritableClient(this.hosts, { ...config, connectionString });
    return new pg.Client({ ...config, connectionString: listenUrl ?? connectionString });
  }

  /** One statement on its own connection. */
  ask<N extends PostgresName>(
    name: N,
    params: ParamsOf<N>,
    tenant?: string,
    entitled = false,
  ): Promise<QueryResult<RowOf<N>>> {
    return this.performAlone({ sql: name, params }, tenant, entitled) as Promise<QueryResult<RowOf<N>>>;
  }

  /** One query of a plan, on its own connection. */
  async performAlone(call: Query, tenant?: string, entitled = false): Promise<QueryResult> {
    const client = await this.connect(tenant, entitled);
    try {
      const result = await this.perform(client, call);
      client.release();
      return result;
    } catch (error) {
      client.release(error as Error);
      throw error;
    }
  }

  /** SQL text on its own connection. */
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

  /**
   * A query of a plan on a connection of the caller, which may have other types and lead through a pooler: the statement
   * has no name and brings its types.
   */
  async performFor(client: Client, { sql, params }: Query): Promise<QueryResult> {
    const statement = this.statement(sql);
    const result = await client.query({ text: statement.text, values: valuesOf(statement, params), types });
    return boundedResult({ rows: result.rows as Row[], count: result.rowCount ?? 0 }, params.pageBytes);
  }

  /** A query of a plan. */
  async perform(client: Client, { sql, params }: Query): Promise<QueryResult> {
    const statement = this.statement(sql);
    if (this.settings.pooler === "none" && this.#mustReplan(client)) await client.query("discard plans");
    const values = valuesOf(statement, params);
    const preparation = this.#preparation;
    let result: pg.QueryResult;
    try {
      result = await client.query(this.#configOf(statement, values));
    } catch (error) {
      if (!isOutdatedPlan(error)) throw error;
      if (preparation === this.#preparation) this.#preparation++;
      result = await this.#resend(client, statement, values, error);
    }
    return boundedResult({ rows: result.rows as Row[], count: result.rowCount ?? 0 }, params.pageBytes);
  }

  /**
   * A newer version may change the type of a column while this process runs. Statements prepared earlier are then
   * rejected on every connection, permanently: they are prepared again under another name. Inside a transaction the
   * error has ended it, and its caller retries (see classifyError).
   */
  async #resend(client: Client, statement: Statement, values: unknown[], planError: unknown): Promise<pg.QueryResult> {
    try {
      return await client.query(this.#configOf(statement, values));
    } catch {
      throw planError; // the transaction has ended
    }
  }

  #configOf({ name, text }: Statement, values: unknown[]): pg.QueryConfig {
    if (this.settings.pooler !== "none") return { text, values };
    return { name: this.#preparation === 0 ? `tape.${name}` : `tape.${name}.${this.#preparation}`, text, values };
  }

  /** Whether this connection must discard its plans. */
  #mustReplan(client: Client): boolean {
    const age = this.#planAges.get(client) ?? { statements: 0, next: firstReplanAfter };
    if (age.statements === 0) this.#planAges.set(client, age);
    if (++age.statements < age.next) return false;
    age.next *= 2;
    return true;
  }

  async close(): Promise<void> {
    this.#slots.close();
    this.transactions.close();
    await this.#pool.end();
  }
}

function valuesOf(statement: Statement, params: Query["params"]): unknown[] {
  return statement.params.map((param) => {
    const value = params[param];
    // Times arrive as fractions of milliseconds; the columns hold whole numbers only.
    return typeof value === "number" ? Math.floor(value) : (value ?? null);
  });
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

import type pg from "pg";
import { backoffMs } from "../../../base/backoff.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Log } from "../../../base/log.ts";
import type { Random } from "../../../base/random.ts";
import { sqlFiles } from "../../sql/files.ts";
import type { Row } from "../../sql/plan.ts";
import { loadStatements, type Statement } from "../../sql/statements.ts";
import { type Connections, types } from "../connections.ts";

/** What a migration needs of a connection. */
export type MigrationClient = Pick<pg.ClientBase, "query">;

export interface SessionOptions {
  readonly connections: Connections;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A seam for tests: what is sent over the session's connection passes through here. */
  readonly wrap?: (client: pg.Client) => MigrationClient;
}

export const sessionName = "durable-tape migration";

/** How long a schema change waits behind a long reader, and with it every later start. Then it releases its place. */
const lockWaitMs = 100;
/**
 * A range of rows waits for their writers, which hold nothing for long; only other writers of the same rows queue
 * behind it.
 */
const rowWaitMs = 2_000;
/** Between two tries. The first come soon: usually a transaction of ours is in the way. */
const tries = { baseMs: 200, capMs: 5_000 };

const plain = (position: number): string => `$${position}`;

/**
 * The connection of the migrating process. It is not pooled, because none of the pool's timeouts may end a statement
 * that takes an hour. Its server process checks every second whether we still exist: a dead client leaves no statement
 * behind that works on, or that waits in the queue of a lock with all others behind it.
 */
export class Session {
  readonly client: MigrationClient;
  readonly #own: pg.Client;
  readonly #options: SessionOptions;
  readonly #statements: ReadonlyMap<string, Statement>;
  /** false: through a pooler, where nothing lasts longer than a transaction. */
  readonly direct: boolean;

  private constructor(own: pg.Client, options: SessionOptions, direct: boolean) {
    this.#own = own;
    this.client = options.wrap?.(own) ?? own;
    this.#options = options;
    this.direct = direct;
    const { schema } = options.connections.settings;
    this.#statements = loadStatements(sqlFiles(new URL("sql/", import.meta.url)), plain, schema);
  }

  static async open(options: SessionOptions): Promise<Session> {
    const { pooler, listenUrl } = options.connections.settings;
    // The address for listening leads past the pooler: where there is one, migrations take it too.
    const direct = pooler === "none" || listenUrl !== undefined;
    const own = options.connections.directClient({ application_name: sessionName, keepAlive: true, types });
    own.on("error", () => {}); // the current statement gets the error
    await own.connect();
    const session = new Session(own, options, direct);
    if (direct) await session.#configure();
    return session;
  }

  async #configure(): Promise<void> {
    const { transactionBoundMs } = this.#options.connections.settings;
    await this.client.query(
      `set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = ${transactionBoundMs}`,
    );
    await this.client.query(
      "set tcp_keepalives_idle = 30; set tcp_keepalives_interval = 10; set tcp_keepalives_count = 3",
    );
    // Not every system supports the first, and only version 17 and newer has the second.
    for (const setting of ["client_connection_check_interval = 1000", "transaction_timeout = 0"]) {
      await this.#own.query(`set ${setting}`).catch(() => {});
    }
  }

  /** Runs one of the statements of sql/. */
  async ask(
    name: string,
    params: Readonly<Record<string, unknown>> = {},
    replacements?: Readonly<Record<string, string>>,
  ): Promise<Row[]> {
    const statement = this.#statements.get(name)!;
    const text = Object.entries(replacements ?? {}).reduce(
      (sql, [name, value]) => sql.replaceAll(name, value),
      statement.text,
    );
    const values = statement.params.map((param) => params[param]);
    return (await this.client.query({ text, values })).rows as Row[];
  }

  /** One transaction, retried until no lock is in its way. */
  transaction(about: string, work: () => Promise<void>, { patient = false } = {}): Promise<void> {
    return this.retry(about, async () => {
      await this.client.query("begin isolation level read committed");
      try {
        const [lock] = await this.ask("lock.transaction", { schema: this.#options.connections.settings.schema });
        if (lock?.mine !== true) throw new MigrationLocked();
        if (!patient) await this.client.query(`set local lock_timeout = ${lockWaitMs}`);
        await work();
        await this.client.query("commit");
      } catch (error) {
        await this.client.query("rollback").catch(() => {});
        throw error;
      }
    });
  }

  /** One statement on its own. One that locks a table yields to its current users; one that locks rows waits. */
  statement(about: string, text: string, locks: "table" | "rows" | "nothing"): Promise<number> {
    const waitMs = { table: lockWaitMs, rows: rowWaitMs, nothing: 0 }[locks];
    return this.retry(about, async () => {
      await this.client.query(`set lock_timeout = ${waitMs}`);
      return (await this.client.query(text)).rowCount ?? 0;
    });
  }

  /** Deadlocks and lock timeouts are no errors here: PostgreSQL has rolled the statement back, and it is retried. */
  async retry<T>(about: string, work: () => Promise<T>): Promise<T> {
    const { clock, random, log, connections } = this.#options;
    for (let k = 1; ; k++) {
      try {
        return await work();
      } catch (error) {
        if (!isLockConflict(error)) throw error;
        if (k > 3) {
          const [first] = await this.ask("blockers", { schema: connections.settings.schema });
          log("warn", "store.migration_waits", {
            waitingFor: about,
            tries: k,
            ...(first === undefined ? {} : { behind: describe(first) }),
          });
        }
      }
      await clock.sleep(backoffMs(k, tries, random));
    }
  }

  async close(): Promise<void> {
    await this.#own.end().catch(() => {});
  }
}

/** Another process migrates. */
class MigrationLocked extends Error {}

function isLockConflict(error: unknown): boolean {
  const { code } = error as { code?: string };
  return error instanceof MigrationLocked || code === "55P03" || code === "40P01" || code === "40001";
}

function describe(row: Row): string {
  return `process ${row.pid} (${row.application_name || row.usename}), ${row.state} for ${row.seconds} s`;
}

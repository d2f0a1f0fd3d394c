import { closeSync, openSync } from "node:fs";
import { DatabaseSync, type SQLInputValue, type StatementSync } from "node:sqlite";
import { TapeError } from "../../model/errors.ts";
import { sqlFiles } from "../sql/files.ts";
import { cutPage, payloadsOf } from "../sql/paging.ts";
import type { Query, QueryResult, Row } from "../sql/plan.ts";
import type { ParamsOf, RowOf, SqliteStatements } from "../sql/statements.gen.ts";
import { loadStatements, type Statement } from "../sql/statements.ts";

/** A seam: tests pass a database whose COMMIT fails after it was carried out. */
export type OpenDatabase = (file: string) => DatabaseSync;

// Busy timeout 0: a blocking one would stall the event loop, and with it the heartbeats, for its whole length.
export const openDatabase: OpenDatabase = (file) => new DatabaseSync(file, { timeout: 0 });

export interface DatabaseOptions {
  readonly file: string;
  /** One process only: the file stays locked, and other processes are rejected. */
  readonly exclusive: boolean;
  /** false: a power cut may lose acknowledged commits. Never the default. */
  readonly durable: boolean;
  readonly open: OpenDatabase;
}

/** SQLite's name for a database without a file, which is lost with its connection. */
export const inMemory = ":memory:";

export const isMemory = (file: string): boolean => file === inMemory;

/** SQLITE_BUSY and SQLITE_LOCKED, with all their extended codes. */
export function isBusy(error: unknown): boolean {
  const code = (error as { errcode?: number } | undefined)?.errcode;
  return code !== undefined && ((code & 0xff) === 5 || (code & 0xff) === 6);
}

export function connect(options: DatabaseOptions): DatabaseSync {
  const { file, exclusive, durable } = options;
  // Created by us with mode 0600 before SQLite touches it; its -wal and -shm files inherit the mode.
  if (!isMemory(file)) closeSync(openSync(file, "a", 0o600));
  const db = options.open(file);
  try {
    if (exclusive) db.exec("pragma locking_mode = exclusive");
    const mode = Object.values(db.prepare("pragma journal_mode = wal").get() ?? {})[0];
    if (mode !== "wal" && !isMemory(file)) {
      throw new TapeError(
        "TAPE_STORE_NOT_DURABLE",
        `this file system does not support a write-ahead log (journal_mode ${mode})`,
        {
          setting: "journal_mode",
        },
      );
    }
    // 2 = FULL: every commit is on disk before it is acknowledged. NORMAL loses acknowledged rows in a power cut.
    db.exec(`pragma synchronous = ${durable ? 2 : 1}`);
    // 64 MiB of cache, and a checkpoint every 4 MiB of log. From then on the log is overwritten instead of growing, and
    // flushing an existing block takes half the time. Fewer, larger checkpoints gain less than that.
    db.exec("pragma cache_size = -65536; pragma temp_store = memory; pragma wal_autocheckpoint = 1000");
    db.exec("pragma trusted_schema = off");
    if (db.prepare("pragma table_info(sqlite_stat1)").get() === undefined) return db;
    // ANALYZE was run on this file. Its statistics of small tables would make full scans look free permanently, and no
    // statement here needs them.
    db.exec("drop table if exists sqlite_stat1; drop table if exists sqlite_stat4");
  } catch (error) {
    db.close();
    throw error;
  }
  db.close(); // drops the statistics that it has already loaded
  return connect(options);
}

/** Statements with many rows and without a token, nonce or witness id. */
const smallNumbers: ReadonlySet<string> = new Set(["timer.due", "lease.preload"]);

/** SQLite keeps a list of numbered parameters, which Node searches for each value that it binds. */
function withoutNumbers(statement: Statement): Statement {
  const once = statement.text.match(/\?\d+/g)?.length === statement.params.length;
  return once ? { ...statement, text: statement.text.replace(/\?\d+/g, "?") } : statement;
}

/** It changes one row or throws. */
const isPlainInsert = ({ text }: Statement): boolean =>
  /^insert into \w+\([^)]*\)\s+values\b/.test(text) && !/\b(on conflict|returning)\b/.test(text);

interface PreparedStatement {
  readonly sql: StatementSync;
  readonly statement: Statement;
  readonly plainInsert: boolean;
}

/** PreparedStatement statements by name. */
export class Statements {
  readonly #db: DatabaseSync;
  readonly #prepared = new Map<string, PreparedStatement>();
  // A bare parameter as the limit is part of SQLite's plan: the statement would be prepared again for every execution,
  // which costs up to thirty times as much as a query that finds nothing.
  static readonly all: ReadonlyMap<string, Statement> = new Map(
    [
      ...loadStatements(sqlFiles(new URL("sql/", import.meta.url)), (position, param) =>
        param === "limit" ? `(?${position} + 0)` : `?${position}`,
      ),
    ].map(([name, statement]) => [name, withoutNumbers(statement)]),
  );

  // Control statements, prepared once: they frame every transaction.
  readonly #begin: StatementSync;
  readonly #commit: StatementSync;
  readonly #version: StatementSync;
  readonly #savepoint: StatementSync;
  readonly #rollbackTo: StatementSync;
  readonly #release: StatementSync;

  constructor(db: DatabaseSync) {
    this.#db = db;
    this.#begin = db.prepare("begin immediate");
    this.#commit = db.prepare("commit");
    this.#version = db.prepare("pragma data_version");
    this.#savepoint = db.prepare("savepoint item");
    this.#rollbackTo = db.prepare("rollback to item");
    this.#release = db.prepare("release item");
  }

  begin(): void {
    this.#begin.run();
  }

  commit(): void {
    this.#commit.run();
  }

  /** Changes whenever another connection has committed; our own commits do not count. */
  dataVersion(): unknown {
    return this.#version.get()?.data_version;
  }

  savepoint(): void {
    this.#savepoint.run();
  }

  rollbackTo(): void {
    this.#rollbackTo.run();
  }

  release(): void {
    this.#release.run();
  }

  get(name: Query["sql"]): PreparedStatement {
    let found = this.#prepared.get(name);
    if (found === undefined) {
      const statement = Statements.all.get(name);
      if (statement === undefined) throw new TapeError("TAPE_INVARIANT", `unknown statement ${name}`, { name });
      const sql = this.#db.prepare(statement.text);
      // Tokens go up to 2^63; what fits a number becomes one again in `plainRow`. Where many rows are read this costs
      // more than all the rest, so statements without a token are listed as such.
      if (statement.returnsRows) sql.setReadBigInts(!smallNumbers.has(name));
      found = { sql, statement, plainInsert: isPlainInsert(statement) };
      this.#prepared.set(name, found);
    }
    return found;
  }

  run<N extends keyof SqliteStatements>(name: N, params: ParamsOf<N>, times: Times): QueryResult<RowOf<N>> {
    return this.perform(name, params, times) as QueryResult<RowOf<N>>;
  }

  /** A query of a plan. */
  perform(name: Query["sql"], params: Query["params"], times: Times): QueryResult {
    const { sql, statement, plainInsert } = this.get(name);
    const values: SQLInputValue[] = [];
    for (const param of statement.params) {
      values.push(bindable(isTime(param) ? times[param] : params[param]));
    }
    if (statement.returnsRows) {
      if (typeof params.pageBytes === "number") {
        const page = cutPage(sql.iterate(...values) as Iterable<Row>, payloadsOf(name) ?? [], params.pageBytes);
        page.rows.forEach(plainRow);
        return page;
      }
      const rows = sql.all(...values) as Row[];
      if (!smallNumbers.has(name)) rows.forEach(plainRow);
      return { rows, count: rows.length };
    }
    if (plainInsert) {
      sql.get(...values); // unlike `run`, it creates no result object
      return { rows: [], count: 1 };
    }
    return { rows: [], count: Number(sql.run(...values).changes) };
  }
}

/** Store time of one transaction: wall clock for operators and dates, monotonic for leases. Whole milliseconds. */
export interface Times {
  readonly at: number;
  readonly now: number;
  /** For relative times: a date that cannot be set, see migrations/0001_initial.sql. */
  readonly steady: number;
}

const isTime = (param: string): param is keyof Times => param === "at" || param === "now" || param === "steady";

function bindable(value: unknown): SQLInputValue {
  if (typeof value === "boolean") return value ? 1 : 0;
  return value === undefined ? null : (value as SQLInputValue);
}

function plainRow(row: Record<string, unknown>): void {
  for (const key in row) {
    const value = row[key];
    if (typeof value === "bigint" && value >= -9007199254740991n && value <= 9007199254740991n)
      row[key] = Number(value);
  }
}

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite";
import { TapeError } from "../../model/errors.ts";
import { sqlFiles } from "../sql/files.ts";
import { cutPage, payloadsOf } from "../sql/paging.ts";
import type { Query, QueryResult, Row } from "../sql/plan.ts";
import type { ParamsOf, RowOf, SqliteStatements } from "../sql/statements.gen.ts";
import { loadStatements, type Statement } from "../sql/statements.ts";

/** Statements with many rows and without a token, nonce or witness id, unless as a text. */
const smallNumbers: ReadonlySet<string> = new Set(["timer.due", "lease.preload", "queue.heads"]);

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

/** Prepared statements by name. */
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

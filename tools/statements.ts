// Writes src/store/sql/statements.gen.ts: the parameters and columns of every statement, as the databases describe them.
import type { DatabaseSync } from "node:sqlite";
import type pg from "pg";
import { postgresStatements } from "../src/store/postgres/connections.ts";
import { payloadsOf } from "../src/store/sql/paging.ts";
import type { Statement } from "../src/store/sql/statements.ts";
import { Statements } from "../src/store/sqlite/statements.ts";

/** One statement as a database describes it. `type` is undefined where the database has none. */
export interface StatementDescription {
  readonly params: ReadonlyMap<string, string | undefined>;
  readonly columns: ReadonlyMap<string, Column>;
}

interface Column {
  readonly type: string | undefined;
  readonly nullable: boolean;
}

export type Descriptions = ReadonlyMap<string, StatementDescription>;

/**
 * Columns that only one of the stores returns, and parameters that only the callers of one of them have, by statement,
 * each with its reason. They are optional.
 */
const onlyInOne: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "feed.page": {
    id: "SQLite: the position of a record",
    after: "SQLite: the position before the page",
    stamp: "PostgreSQL: the first part of a position, before the journal and the number within it",
    journal: "PostgreSQL: the second part",
    seq: "PostgreSQL: the third part",
    scan: "PostgreSQL: SQLite's positions are numbered, so their difference bounds the page",
  },
  "feed.tenants": { scan: "the same", edge: "the same", feed_offset: "PostgreSQL: only its stores are shards" },
  "meta.get": {
    boot: "SQLite: the machine's boot, whose clock its leases use",
    anchor: "the same",
    file: "SQLite: a copy of the file is another store",
    channel: "PostgreSQL: the channel of wake hints",
    timeline: "PostgreSQL: only a server can be promoted",
    timeline_now: "the same",
    server_version: "PostgreSQL: settings of the server",
    fsync: "the same",
    synchronous_commit: "the same",
    full_page_writes: "the same",
    standby: "the same",
  },
};

/** Columns and parameters that SQLite's store supplies itself. */
const supplied: Readonly<Record<string, string>> = {
  "lease.first token": "RETURNING costs half the statement's time, and the token is known before",
};

/** Parameters that only SQLite has. */
const sqliteParams: Readonly<Record<string, string>> = {
  "meta.anchor anchor": "Whole",
  "meta.boot anchor": "Whole",
  "meta.boot boot": "Text",
  "meta.file file": "Text",
};

/** Columns that the store adds around a list, for its own use. */
const pageColumns: ReadonlySet<string> = new Set(["row_bytes", "page_bytes"]);

/** Changes the schema: it has neither parameters nor columns, and PostgreSQL does not describe it. */
const utility: ReadonlySet<string> = new Set(["migrations.create"]);

/** The store itself supplies these to SQLite's statements. */
const times: ReadonlySet<string> = new Set(["at", "now", "steady"]);

/** Tables on the optional side of an outer join, whose columns may be null although they are declared not null. */
function outerTables(text: string): ReadonlySet<string> {
  const joined = [...text.matchAll(/\bleft join\b([\s\S]*?)\bon\b/gi)].map((found) => found[1]!);
  return new Set(
    joined.flatMap((part) => [...part.matchAll(/(?:^|\bfrom|\bjoin)\s+(?:tape\.)?(\w+)/gi)].map((at) => at[1]!)),
  );
}

export function describeSqlite(db: DatabaseSync): Descriptions {
  const required = new Set(
    db
      .prepare(
        `select t.name as "table", c.name as "column" from pragma_table_list t, pragma_table_info(t.name) c
         where c."notnull" or c.pk`,
      )
      .all()
      .map(({ table, column }) => `${table}.${column}`),
  );
  const describe = ({ name, text, params }: Statement): [string, StatementDescription] => {
    const outer = outerTables(text);
    const columns = db.prepare(text).columns();
    return [
      name,
      {
        params: new Map(params.filter((param) => !times.has(param)).map((param) => [param, undefined])),
        columns: new Map(
          columns.map(({ name: column, table, column: origin, type }) => [
            column,
            { type: type?.toLowerCase(), nullable: outer.has(table ?? "") || !required.has(`${table}.${origin}`) },
          ]),
        ),
      },
    ];
  };
  return new Map([...Statements.all.values()].map(describe));
}

interface Field {
  readonly name: string;
  readonly tableID: number;
  readonly columnID: number;
  readonly dataTypeID: number;
}

/** Parse and Describe, without executing anything. */
function describeText(client: pg.Client, name: string, text: string): Promise<{ params: number[]; fields: Field[] }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ params: number[]; fields: Field[] }>();
  let params: number[] = [];
  let fields: Field[] = [];
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
  connection.once("parameterDescription", (message: { dataTypeIDs: number[] }) => {
    params = message.dataTypeIDs;
  });
  const nothing = (): void => {};
  client.query({
    submit(wire: pg.Connection) {
      wire.parse({ text, name: "", types: [] }, true);
      wire.describe({ type: "S", name: "" }, true);
      wire.sync();
    },
    handleRowDescription: (message: { fields: Field[] }) => {
      fields = message.fields;
    },
    handleReadyForQuery: () => resolve({ params, fields }),
    handleError: (error: Error) => reject(new Error(`${name}: ${error.message}`, { cause: error })),
    handleDataRow: nothing,
    handleCommandComplete: nothing,
    handleEmptyQuery: nothing,
    handlePortalSuspended: nothing,
  } as unknown as pg.Submittable);
  return promise;
}

export async function describePostgres(client: pg.Client, schema = "tape"): Promise<Descriptions> {
  const types = await client.query<{ oid: number; name: string }>("select oid::int, typname as name from pg_type");
  const typeNames = new Map(types.rows.map(({ oid, name }) => [oid, name]));
  const notNull = await client.query<{ key: string; table: string }>(
    `select a.attrelid || '.' || a.attnum as key, c.relname as table from pg_attribute a join pg_class c on c.oid = a.attrelid
     where c.relnamespace = $1::regnamespace and a.attnotnull`,
    [schema],
  );
  const required = new Map(notNull.rows.map(({ key, table }) => [key, table]));
  const described = new Map<string, StatementDescription>();
  for (const { name, text, params: names } of postgresStatements(schema).values()) {
    if (utility.has(name)) {
      described.set(name, { params: new Map(), columns: new Map() });
      continue;
    }
    const { params, fields } = await describeText(client, name, text);
    const outer = outerTables(text);
    const isRequired = ({ tableID, columnID }: Field): boolean => {
      const table = required.get(`${tableID}.${columnID}`);
      return table !== undefined && !outer.has(table);
    };
    described.set(name, {
      params: new Map(names.map((param, k) => [param, typeNames.get(params[k]!)])),
      columns: new Map(
        fields
          .filter((field) => !pageColumns.has(field.name))
          .map((field) => [field.name, { type: typeNames.get(field.dataTypeID), nullable: !isRequired(field) }]),
      ),
    });
  }
  return described;
}

const paramTypes: Readonly<Record<string, string>> = {
  int8: "Whole",
  int4: "Whole",
  text: "Text",
  bool: "Truth",
  json: "Text",
  _int8: "Text", // an array literal, see arrays.ts
  _text: "Text",
};
const columnTypes: Readonly<Record<string, string>> = {
  int8: "number",
  int4: "number",
  float8: "number",
  integer: "number",
  text: "string",
  name: "string",
  bool: "Flag",
};

/** The text of statements.gen.ts. Throws where the stores differ, or where a statement needs a cast. */
export function statementTypes(postgres: Descriptions, sqlite: Descriptions): string {
  const names = [...new Set([...postgres.keys(), ...sqlite.keys()])].sort();
  const typeByParam = paramTypesByName(postgres);
  const faults: string[] = [];
  const entryOf = (name: string): string => {
    try {
      return entryText(name, postgres.get(name), sqlite.get(name), (param) => typeByParam.get(param));
    } catch (error) {
      faults.push((error as Error).message);
      return "";
    }
  };
  const within = (chosen: (name: string) => boolean): string => names.filter(chosen).map(entryOf).join("");
  const text = `// The parameters and columns of every statement. Written by \`npm run schema\`: change the SQL files instead.

/** Whole numbers: in PostgreSQL bigint. */
type Whole = number | bigint | null;
type Text = string | null;
type Truth = boolean | null;
/** SQLite has 0 and 1. */
type Flag = boolean | number;

/** Statements of both stores. */
export interface SharedStatements {
${within((name) => postgres.has(name) && sqlite.has(name))}}

/** And those that only PostgreSQL has. */
export interface PostgresStatements extends SharedStatements {
${within((name) => !sqlite.has(name))}}

/** And those that only SQLite has. */
export interface SqliteStatements extends SharedStatements {
${within((name) => !postgres.has(name))}}

export interface Statements extends PostgresStatements, SqliteStatements {}

export type StatementName = keyof Statements;

/** All parameters of a statement, by their names in camelCase. */
export type ParamsOf<N extends StatementName> = Readonly<Statements[N]["params"]>;

/** A row of a statement, by the names of its columns. */
export type RowOf<N extends StatementName> = Readonly<Statements[N]["row"]>;
`;
  if (faults.length > 0) throw new Error(faults.join("\n"));
  return text;
}

/** SQLite has no parameter types. A parameter that only its statement has gets the type of that name elsewhere. */
function paramTypesByName(postgres: Descriptions): ReadonlyMap<string, string> {
  const found = new Map<string, Set<string>>();
  for (const { params } of postgres.values()) {
    for (const [param, type] of params) {
      const types = found.get(param) ?? new Set();
      found.set(param, types.add(paramTypes[type ?? ""] ?? ""));
    }
  }
  return new Map([...found].flatMap(([param, types]) => (types.size === 1 ? [[param, [...types][0]!]] : [])));
}

function entryText(
  name: string,
  postgres: StatementDescription | undefined,
  sqlite: StatementDescription | undefined,
  byName: (param: string) => string | undefined,
): string {
  const both = postgres !== undefined && sqlite !== undefined;
  const names = new Set([...(postgres?.params.keys() ?? []), ...(sqlite?.params.keys() ?? [])]);
  const params = [...names].flatMap((param) => {
    if (param === "pageBytes") return ["pageBytes?: Whole"];
    if (supplied[`${name} ${param}`] !== undefined) return [];
    const onlyOne = both && !(postgres.params.has(param) && sqlite.params.has(param));
    const type = postgres?.params.get(param);
    const known = type === undefined ? (sqliteParams[`${name} ${param}`] ?? byName(param)) : paramTypes[type];
    if (known === undefined) throw new Error(`${name}: parameter ${param} is ${type ?? "of no known type"}: cast it`);
    return [`${param}${onlyOne && onlyInOne[name]?.[param] !== undefined ? "?" : ""}: ${known}`];
  });
  if (postgres === undefined && payloadsOf(name) !== undefined) params.push("pageBytes?: Whole");
  const columns = [...new Set([...(postgres?.columns.keys() ?? []), ...(sqlite?.columns.keys() ?? [])])];
  const fields = columns.map((column) => {
    const [inPostgres, inSqlite] = [postgres?.columns.get(column), sqlite?.columns.get(column)];
    const onlyOne =
      both && (inPostgres === undefined || inSqlite === undefined) && supplied[`${name} ${column}`] === undefined;
    if (onlyOne && onlyInOne[name]?.[column] === undefined)
      throw new Error(`${name}: only ${inPostgres === undefined ? "SQLite" : "PostgreSQL"} returns ${column}`);
    const { type, nullable } = (inPostgres ?? inSqlite)!;
    const known = type === undefined ? "unknown" : columnTypes[type];
    if (known === undefined) throw new Error(`${name}: column ${column} is ${type}: cast it to bigint or text`);
    return `${column}${onlyOne ? "?" : ""}: ${known}${nullable && known !== "unknown" ? " | null" : ""}`;
  });
  for (const listed of Object.keys(onlyInOne[name] ?? {})) {
    const same = (["params", "columns"] as const).every(
      (of) => postgres?.[of].has(listed) === sqlite?.[of].has(listed),
    );
    if (same) throw new Error(`${name}: ${listed} is listed as a difference but is none; remove the entry`);
  }
  const key = /^[a-z_]+$/.test(name) ? name : `"${name}"`;
  return `  ${key}: {\n${typeText("params", params)}${typeText("row", fields)}  };\n`;
}

function typeText(key: string, fields: readonly string[]): string {
  if (fields.length === 0) return `    ${key}: Record<never, never>;\n`;
  const line = `    ${key}: { ${fields.join("; ")} };\n`;
  return line.length <= 121 ? line : `    ${key}: {\n${fields.map((field) => `      ${field};\n`).join("")}    };\n`;
}

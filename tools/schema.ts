// Writes src/store/*/schema.sql: the schema of a freshly migrated database, for readers and for a test that compares it.
// Also writes src/store/sql/statements.gen.ts, the types of the SQL statements, and src/config/tape.schema.json, which is
// published: editors validate tape.yaml with it.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { configJsonSchema } from "../src/config/schema.ts";
import { openPostgres } from "../src/store/postgres/open.ts";
import { openSqlite } from "../src/store/sqlite/open.ts";
import { dropDatabase, freshDatabase } from "../test/postgres/database.ts";
import { startPostgres } from "../test/postgres/server.ts";
import { type Descriptions, describePostgres, describeSqlite, statementTypes } from "./statements.ts";

export const schemaFiles = {
  sqlite: new URL("../src/store/sqlite/schema.sql", import.meta.url),
  postgres: new URL("../src/store/postgres/schema.sql", import.meta.url),
  statements: new URL("../src/store/sql/statements.gen.ts", import.meta.url),
  config: new URL("../src/config/tape.schema.json", import.meta.url),
};

const header = (store: string): string =>
  `-- What a freshly migrated ${store} store looks like. Written by \`npm run schema\`, read by people and by a test only.\n`;

export function sqliteSchema(db: DatabaseSync): string {
  const rows = db
    .prepare("select sql from sqlite_schema where sql is not null order by tbl_name, type <> 'table', name")
    .all();
  const statements = rows.map((row) => String(row.sql).replace(/[ \t]+$/gm, ""));
  return `${header("SQLite")}\n${statements.map((text) => `${text};\n`).join("\n")}`;
}

interface Line {
  readonly text: string;
}

const tables = `
  select c.relname as name, c.relpersistence as persistence, array_to_string(c.reloptions, ', ') as options
  from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r' order by c.relname`;
const columns = `
  select a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || case when a.attnotnull then ' not null' else '' end
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') as text
  from pg_attribute a left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attrelid = ($1 || '.' || $2)::regclass and a.attnum > 0 and not a.attisdropped order by a.attnum`;
// From PostgreSQL 18 on NOT NULL is a constraint of its own; the columns already show it.
const constraints = `
  select conname || ' ' || pg_get_constraintdef(oid) as text
  from pg_constraint where conrelid = ($1 || '.' || $2)::regclass and contype <> 'n' order by conname`;
const indexes = `
  select pg_get_indexdef(i.indexrelid) as text from pg_index i
  where i.indrelid = ($1 || '.' || $2)::regclass and not i.indisprimary order by 1`;
const functions = `
  select pg_get_functiondef(oid) as text from pg_proc where pronamespace = $1::regnamespace order by proname`;
const others = `
  select c.relkind::text || ' ' || c.relname as text
  from pg_class c where c.relnamespace = $1::regnamespace and c.relkind not in ('r', 'i') order by 1`;

/** The same text for every supported version and every name of the schema. */
export async function postgresSchema(client: pg.ClientBase, schema = "tape"): Promise<string> {
  const texts = async (query: string, ...values: string[]): Promise<string[]> =>
    (await client.query<Line>(query, values)).rows.map((row) => row.text.trim());
  const parts: string[] = [];
  // Names on the search path are printed without their schema, and a role may have the schema's name.
  await client.query("set search_path = ''");
  const found = await client.query<{ name: string; persistence: string; options: string | null }>(tables, [schema]);
  for (const { name, persistence, options } of found.rows) {
    const inside = [...(await texts(columns, schema, name)), ...(await texts(constraints, schema, name))];
    const kind = persistence === "p" ? "table" : `table (persistence ${persistence})`;
    const tail = options === null ? "" : ` with (${options})`;
    parts.push(`${kind} ${schema}.${name}(\n${inside.map((line) => `  ${line}`).join(",\n")}\n)${tail};`);
    for (const text of await texts(indexes, schema, name)) parts.push(`${text};`);
  }
  for (const text of await texts(functions, schema)) parts.push(`${text};`);
  for (const text of await texts(others, schema)) parts.push(`${text};`);
  await client.query("reset search_path");
  const text = `${header("PostgreSQL")}\n${parts.join("\n\n")}\n`.replace(/[ \t]+$/gm, "");
  return schema === "tape" ? text : text.replace(new RegExp(`"${schema}"\\.|\\b${schema}\\.`, "g"), "tape.");
}

interface Found {
  readonly schema: string;
  readonly statements: Descriptions;
}

async function fromSqlite(): Promise<Found> {
  const folder = mkdtempSync(join(tmpdir(), "tape-schema-"));
  const file = join(folder, "tape.db");
  try {
    await (await openSqlite({ file })).close();
    const db = new DatabaseSync(file);
    const found = { schema: sqliteSchema(db), statements: describeSqlite(db) };
    db.close();
    return found;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function fromPostgres(major: 14 | 18): Promise<Found> {
  const server = await startPostgres({ major, settings: {} });
  const url = await freshDatabase(server.url);
  const client = new pg.Client(url);
  try {
    await (await openPostgres({ url })).close();
    await client.connect();
    return { schema: await postgresSchema(client), statements: await describePostgres(client) };
  } finally {
    await client.end();
    await dropDatabase(url);
    await server.stop();
  }
}

if (import.meta.main) {
  const [sqlite, old, recent] = await Promise.all([fromSqlite(), fromPostgres(14), fromPostgres(18)]);
  if (old.schema !== recent.schema)
    throw new Error("PostgreSQL 14 and 18 describe the schema differently: normalise it here");
  const types = statementTypes(recent.statements, sqlite.statements);
  if (types !== statementTypes(old.statements, sqlite.statements))
    throw new Error("PostgreSQL 14 and 18 describe a statement differently: cast its parameters and columns");
  writeFileSync(schemaFiles.sqlite, sqlite.schema);
  writeFileSync(schemaFiles.postgres, recent.schema);
  writeFileSync(schemaFiles.statements, types);
  writeFileSync(schemaFiles.config, `${JSON.stringify(configJsonSchema(), null, 2)}\n`);
  const written = Object.values(schemaFiles).map((file) => relative(process.cwd(), fileURLToPath(file)));
  console.log(`wrote ${written.join(", ")}`);
}

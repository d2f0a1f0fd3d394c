import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { Tape } from "../src/host/tape.ts";
import { createRunner, workflow } from "../src/sdk/workflow.ts";
import { payload } from "./ten.ts";

/** Fills a store with finished runs, each a copy of one that the engine executed in that store. */
export const past = workflow("past", async (tape, _input: number) =>
  tape.step("only", () => ({ ok: true, value: payload })),
);
const template = "past-template";
const tables = ["runs", "leases", "records"] as const;
const chunk = 20_000;

/** Fills a store, which no process may have open, with `count` finished runs. */
export async function fill(url: string, runs: number): Promise<void> {
  const app = await Tape.open({ store: url, runner: createRunner({ workflows: [past] }) });
  await (await app.start(past, 1, { id: template })).result();
  await app.close();
  if (url.startsWith("sqlite:")) fillSqlite(url.slice("sqlite:".length), runs);
  else await fillPostgres(url, runs);
}

/**
 * What differs in a copy: its number, its id, and its place in the feed. Everything else, including columns that a later
 * migration may add, is as the engine wrote it.
 */
function copied(table: (typeof tables)[number], columns: readonly string[], stamp: string): string {
  const changed: Readonly<Record<string, string>> = {
    ...(table === "runs" ? { journal: "n", root: "n", id: "'past-' || n" } : {}),
    ...(table === "leases" ? { journal: "n", run: "n" } : {}),
    ...(table === "records"
      ? { journal: "n", stamp, body: `replace(body, '"id":"${template}"', '"id":"past-' || n || '"')` }
      : {}),
  };
  return columns.map((column) => changed[column] ?? column).join(", ");
}

const copiedColumns = (table: string, columns: readonly string[]): string[] =>
  columns.filter((column) => !(table === "records" && column === "id")); // the row's own number

function fillSqlite(file: string, runs: number): void {
  const db = new DatabaseSync(file);
  db.exec("pragma journal_mode = wal; pragma synchronous = 1; pragma cache_size = -262144");
  const journal = (db.prepare("select journal from runs where id = ?").get(template) as { journal: number }).journal;
  const { next } = db.prepare("select next_journal as next from meta").get() as { next: number };
  for (let from = next; from < next + runs; from += chunk) {
    const to = Math.min(from + chunk, next + runs);
    db.exec("begin immediate");
    for (const table of tables) {
      const all = (db.prepare(`select name from pragma_table_info('${table}')`).all() as { name: string }[]).map(
        (c) => c.name,
      );
      const columns = copiedColumns(table, all);
      const numbers = `with recursive numbers(n) as (select ${from} union all select n + 1 from numbers where n < ${to - 1})`;
      const order = table === "records" ? " order by n, seq" : "";
      db.exec(
        `${numbers} insert into ${table}(${columns.join(", ")}) select ${copied(table, columns, "0")} from numbers, ${table} where journal = ${journal}${order}`,
      );
    }
    db.exec(`update meta set next_journal = ${to}; commit`);
  }
  db.exec("pragma wal_checkpoint(truncate)");
  db.close();
}

async function fillPostgres(url: string, runs: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const one = async <T>(text: string): Promise<T> => (await client.query(text)).rows[0] as T;
    const { journal } = await one<{ journal: string }>(`select journal from tape.runs where id = '${template}'`);
    const next = Number((await one<{ next: string }>("select next_journal as next from tape.meta")).next);
    for (let from = next; from < next + runs; from += chunk) {
      const to = Math.min(from + chunk, next + runs);
      await client.query("begin");
      const { stamp } = await one<{ stamp: string }>(
        "select pg_current_xact_id()::text::bigint + feed_offset as stamp from tape.meta",
      );
      for (const table of tables) {
        const { rows } = await client.query<{ name: string }>(
          `select column_name as name from information_schema.columns where table_schema = 'tape' and table_name = '${table}' order by ordinal_position`,
        );
        const columns = copiedColumns(
          table,
          rows.map(({ name }) => name),
        );
        await client.query(
          `insert into tape.${table}(${columns.join(", ")}) select ${copied(table, columns, stamp)} from generate_series(${from}, ${to - 1}) as n, tape.${table} where journal = ${journal} order by n`,
        );
      }
      await client.query(`update tape.meta set next_journal = ${to}`);
      await client.query("commit");
    }
    // What autovacuum does within its first minute.
    for (const table of tables) await client.query(`vacuum analyze tape.${table}`);
  } finally {
    await client.end();
  }
}

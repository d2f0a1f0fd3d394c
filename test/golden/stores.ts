import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { seededRandom } from "../../src/base/random.ts";
import { openStore } from "../../src/host/open-store.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { migrations } from "../../src/store/postgres/migrate.ts";
import { openPostgres } from "../../src/store/postgres/open.ts";
import type { VirtualTime } from "../../testkit/kit/virtual-time.ts";
import { inVirtualTime } from "../kit/virtual-postgres.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";

/** A store whose content can be kept in a file. */
export interface KeptStore {
  readonly store: Store;
  readonly database?: DatabaseSync;
  content(): Promise<Uint8Array>;
  close(): Promise<void>;
}

/** SQLite in memory. `content`: the bytes of the file of an earlier version, which opening it migrates. */
export function sqliteOf(time: VirtualTime, content?: Uint8Array): Promise<KeptStore> {
  const database = new DatabaseSync(":memory:", { timeout: 0 });
  if (content !== undefined) database.deserialize(content);
  return sqliteOn(time, database);
}

export async function sqliteOn(time: VirtualTime, database: DatabaseSync): Promise<KeptStore> {
  const opening = openStore("memory:", {
    clock: time,
    random: seededRandom(`golden ${time.now}`),
    open: () => database,
  });
  const store = await time.during(opening);
  return {
    store,
    database,
    content: async () => database.serialize(),
    close: () => time.during(store.close()),
  };
}

const tables = `select tablename as name from pg_tables where schemaname = 'tape' order by tablename`;

const storedColumns = `select string_agg(column_name, ', ') as columns from information_schema.columns
  where table_schema = 'tape' and table_name = $1 and is_generated = 'NEVER'`;

/**
 * PostgreSQL in virtual time. `content`: the rows of a database of an earlier version, which had the first `schema`
 * migrations; they are restored as they were, and opening the store migrates them.
 */
export async function postgresOf(
  server: string,
  time: VirtualTime,
  old?: { readonly content: Uint8Array; readonly schema: number },
): Promise<KeptStore> {
  const url = await freshDatabase(server);
  const client = new pg.Client(url);
  await client.connect();
  if (old !== undefined) await restore(url, client, old);
  const { store, close } = await inVirtualTime(url, time);
  return {
    store,
    async content() {
      const lines: string[] = [];
      for (const { name } of (await client.query<{ name: string }>(tables)).rows) {
        const { rows } = await client.query<{ row: string }>(`select row_to_json(t)::text as row from tape.${name} t`);
        lines.push(...rows.map(({ row }) => `${name} ${row}`));
      }
      return Buffer.from(lines.sort().join("\n"));
    },
    async close() {
      await close();
      await client.end();
      await dropDatabase(url);
    },
  };
}

async function restore(
  url: string,
  client: pg.Client,
  { content, schema }: { readonly content: Uint8Array; readonly schema: number },
): Promise<void> {
  const known = migrations.filter(({ number }) => number <= schema);
  await (await openPostgres({ url, migrations: known })).close();
  const lines = Buffer.from(content).toString().split("\n");
  await client.query("begin");
  const { rows } = await client.query<{ timeline: string }>("select timeline from tape.meta");
  for (const { name } of (await client.query<{ name: string }>(tables)).rows) {
    await client.query(`delete from tape.${name}`);
    const own = lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
    const { columns } = (await client.query<{ columns: string }>(storedColumns, [name])).rows[0]!;
    const all = `select t.* from unnest($1::text[]) line, json_populate_record(null::tape.${name}, line::json) t`;
    const insert = `insert into tape.${name}(${columns}) overriding system value select ${columns} from (${all}) t`;
    await client.query(insert, [own]);
  }
  await client.query(
    "select setval(pg_get_serial_sequence('tape.audit', 'id'), 1 + coalesce(max(id), 0)) from tape.audit",
  );
  // The new server is no promoted standby of the old one, and its transactions come after those of the old one.
  await client.query(
    "update tape.meta set timeline = $1, feed_offset = 1 + (select coalesce(max(stamp), 0) from tape.records)",
    [rows[0]!.timeline],
  );
  await client.query("commit");
}

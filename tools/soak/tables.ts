import { existsSync, statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";

/** Sizes of the store's log and file, and row counts of each table. */
export interface StoreReport {
  readonly walMb: number;
  readonly storeMb: number;
  readonly rows: Readonly<Record<string, number>>;
  /** Takeovers of runs whose records still exist. */
  readonly takeovers: number;
}

export interface StoreWatch {
  measure(): Promise<StoreReport>;
  close(): Promise<void>;
}

/** The store's own journal records every deletion; it is counted separately from the journals of runs. */
const own = "records where journal = 1";
export const ownName = "records (the store's own)";
const takeovers = `kind = 'term.started' and body like '%"reason":"recovery"%'`;

const separateOwn = (rows: Record<string, number>, own: number): Record<string, number> => ({
  ...rows,
  records: (rows.records ?? 0) - own,
  [ownName]: own,
});

export function watchSqlite(file: string): StoreWatch {
  const db = new DatabaseSync(file, { readOnly: true });
  const tables = (
    db.prepare("select name from sqlite_master where type = 'table' order by name").all() as { name: string }[]
  ).map(({ name }) => name);
  const count = (from: string): number => (db.prepare(`select count(*) as n from ${from}`).get() as { n: number }).n;
  const size = (name: string): number => (existsSync(name) ? statSync(name).size / 1e6 : 0);
  return {
    measure: async () => ({
      walMb: size(`${file}-wal`),
      storeMb: size(file),
      rows: separateOwn(Object.fromEntries(tables.map((name) => [name, count(name)])), count(own)),
      takeovers: count(`records where ${takeovers}`),
    }),
    close: async () => db.close(),
  };
}

export async function watchPostgres(url: string): Promise<StoreWatch> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'tape' order by 1",
  );
  const number = async (text: string): Promise<number> =>
    Number((await client.query<{ n: string }>(`select ${text}`)).rows[0]?.n);
  return {
    async measure() {
      const counts: [string, number][] = [];
      for (const { name } of rows) counts.push([name, await number(`count(*) as n from tape.${name}`)]);
      return {
        // Checkpoints recycle segments by age, so the number of files depends on the server more than on our load.
        walMb: 0,
        storeMb: (await number("pg_database_size(current_database()) as n")) / 1e6,
        rows: separateOwn(Object.fromEntries(counts), await number(`count(*) as n from tape.${own}`)),
        takeovers: await number(`count(*) as n from tape.records where ${takeovers}`),
      };
    },
    close: () => client.end(),
  };
}

import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { guardExternalSqlite, guardPostgres, type LeaseHolder } from "../../src/exports/index.ts";
import type { Phase } from "./phases.ts";

export interface Sandbox {
  readonly id: string;
  readonly version: number;
  readonly phase: Phase;
  /** Since its last change, by the database's clock, because the clocks of replicas differ. */
  readonly ageMs: number;
}

/**
 * The gateway's own table. It has two kinds of writers: requests, which any replica serves, and the reconciler, which only
 * the holder of the lease runs. Both compare the version, so that one of two writers of a row wins. The reconciler's
 * writes are also guarded: a write under a lost lease is rejected, whatever the version.
 */
export interface Sandboxes {
  create(id: string): Promise<boolean>;
  get(id: string): Promise<Sandbox | undefined>;
  list(): Promise<Sandbox[]>;
  /** Returns false if the row has changed meanwhile. Throws TAPE_FENCED if `holder` no longer holds the lease. */
  change(sandbox: Sandbox, phase: Phase, holder?: LeaseHolder): Promise<boolean>;
  close(): Promise<void>;
}

export async function postgresSandboxes(url: string): Promise<Sandboxes> {
  const bare = new URL(url);
  bare.search = ""; // the parameters are for Tape's store
  const pool = new pg.Pool({ connectionString: bare.href, max: 4, allowExitOnIdle: true });
  pool.on("error", () => {});
  await pool.query(`do $$ begin
    perform pg_advisory_xact_lock(7230001);
    create table if not exists sandboxes(
      id text primary key, version int not null, phase text not null, changed_at timestamptz not null);
  end $$`);
  const columns = `id, version, phase,
    (extract(epoch from clock_timestamp() - changed_at) * 1000)::float8 as "ageMs"`;
  return {
    async create(id) {
      const insert =
        "insert into sandboxes values ($1, 1, 'Provisioning', clock_timestamp()) on conflict (id) do nothing";
      return (await pool.query(insert, [id])).rowCount === 1;
    },
    async get(id) {
      return (await pool.query(`select ${columns} from sandboxes where id = $1`, [id])).rows[0];
    },
    async list() {
      return (await pool.query(`select ${columns} from sandboxes order by id`)).rows;
    },
    async change({ id, version }, phase, holder) {
      const client = await pool.connect();
      try {
        await client.query("begin");
        if (holder !== undefined) await guardPostgres(client, holder);
        const update = `update sandboxes set phase = $3, version = version + 1, changed_at = clock_timestamp()
          where id = $1 and version = $2`;
        const { rowCount } = await client.query(update, [id, version, phase]);
        await client.query("commit");
        return rowCount === 1;
      } catch (error) {
        await client.query("rollback").catch(() => {});
        throw error;
      } finally {
        client.release();
      }
    },
    close: () => pool.end(),
  };
}

/** For one replica on one machine. It needs its own file, because the store locks the store's. */
export function sqliteSandboxes(file: string): Sandboxes {
  const database = new DatabaseSync(file, { timeout: 5_000 });
  database.exec(`create table if not exists sandboxes(
    id text primary key, version integer not null, phase text not null, changed_at integer not null)`);
  const now = "cast(unixepoch('subsec') * 1000 as integer)";
  const columns = `id, version, phase, ${now} - changed_at as ageMs`;
  return {
    async create(id) {
      const insert = `insert or ignore into sandboxes values (?, 1, 'Provisioning', ${now})`;
      return database.prepare(insert).run(id).changes === 1;
    },
    async get(id) {
      return database.prepare(`select ${columns} from sandboxes where id = ?`).get(id) as Sandbox | undefined;
    },
    async list() {
      return database.prepare(`select ${columns} from sandboxes order by id`).all() as unknown as Sandbox[];
    },
    async change({ id, version }, phase, holder) {
      database.exec("begin immediate");
      try {
        if (holder !== undefined) guardExternalSqlite(database, holder);
        const update = `update sandboxes set phase = ?, version = version + 1, changed_at = ${now}
          where id = ? and version = ?`;
        const { changes } = database.prepare(update).run(phase, id, version);
        database.exec("commit");
        return changes === 1;
      } catch (error) {
        database.exec("rollback");
        throw error;
      }
    },
    close: async () => database.close(),
  };
}

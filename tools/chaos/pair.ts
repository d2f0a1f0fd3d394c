import { spawnSync } from "node:child_process";
import { appendFileSync, chownSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { systemClock } from "../../src/base/clock.ts";
import { serverUser } from "../../test/postgres/binaries.ts";
import { type PostgresProxy, startProxy } from "../../test/postgres/proxy.ts";
import { type PostgresServer, startPostgres } from "../../test/postgres/server.ts";

const settings = { wal_keep_size: "512MB" };
const patienceMs = 60_000;

/** A primary and its standby. The WAL goes through a proxy that can cut the connection, so that the standby surely lags. */
export class Pair {
  readonly synchronous: boolean;
  #primary: PostgresServer;
  #standby: PostgresServer | undefined;
  #proxy: PostgresProxy | undefined;
  #joining: Promise<void> = Promise.resolve();

  private constructor(primary: PostgresServer, synchronous: boolean) {
    this.#primary = primary;
    this.synchronous = synchronous;
  }

  static async start(synchronous: boolean): Promise<Pair> {
    const pair = new Pair(await startPostgres({ major: 18, settings }), synchronous);
    try {
      await pair.rejoin();
      return pair;
    } catch (error) {
      await pair.stop();
      throw error;
    }
  }

  /** The current primary. */
  get primary(): PostgresServer {
    return this.#primary;
  }

  /** A standby from a copy of the running primary. */
  rejoin(): Promise<void> {
    this.#joining = this.#join();
    return this.#joining;
  }

  async #join(): Promise<void> {
    const primary = this.#primary;
    this.#proxy = await startProxy(primary.url);
    const port = new URL(this.#proxy.url).port;
    this.#standby = await startPostgres({ major: 18, settings, fill: (data) => copy(primary, data, port) });
    const name = this.synchronous ? "*" : "";
    await withClient(primary.url, async (client) => {
      await client.query(`alter system set synchronous_standby_names = '${name}'`);
      await client.query("select pg_reload_conf()");
      const state = this.synchronous ? "sync" : "async";
      const until = systemClock.mono() + patienceMs;
      for (;;) {
        const { rows } = await client.query(
          "select 1 from pg_stat_replication where state = 'streaming' and sync_state = $1",
          [state],
        );
        if (rows.length > 0) return;
        if (systemClock.mono() > until) throw new Error("the standby does not follow the primary");
        await systemClock.sleep(20);
      }
    });
  }

  /** Returns how many bytes of WAL the primary had written that the standby never received. */
  async failover(lagMs: number): Promise<number> {
    await this.#joining;
    const dead = this.#primary;
    const standby = this.#standby!;
    if (!this.synchronous) {
      this.#proxy!.hang(true);
      this.#proxy!.cut();
      await systemClock.sleep(lagMs);
    }
    const written = await positionOf(dead.url, "pg_current_wal_flush_lsn()");
    await dead.halt("immediate");
    const got = await positionOf(standby.url, "pg_last_wal_receive_lsn()");
    await withClient(standby.url, (client) => client.query("select pg_promote()"));
    this.#primary = standby;
    this.#standby = undefined;
    await this.#proxy!.close();
    await dead.stop();
    return Math.max(0, Number(written - got));
  }

  async stop(): Promise<void> {
    await this.#joining.catch(() => {});
    await this.#proxy?.close();
    await this.#standby?.stop();
    await this.#primary.stop();
  }
}

/** Fills a folder for a standby. An online copy needs no tool but cp: the server records where it starts and ends. */
export async function copy(primary: PostgresServer, data: string, port: string): Promise<void> {
  await withClient(primary.url, async (client) => {
    await client.query("select pg_backup_start('chaos', true)");
    spawnSync("cp", ["-a", `${primary.data}/.`, data], { stdio: "ignore" }); // files may vanish meanwhile, which is harmless
    const { rows } = await client.query<{ labelfile: string }>("select labelfile from pg_backup_stop(false)");
    rmSync(join(data, "postmaster.pid"), { force: true });
    writeFileSync(join(data, "server.log"), "");
    writeFileSync(join(data, "backup_label"), rows[0]!.labelfile);
    writeFileSync(join(data, "standby.signal"), "");
    writeFileSync(join(data, "postgresql.auto.conf"), "");
    const address = `host=127.0.0.1 port=${port} user=tape application_name=standby sslmode=disable gssencmode=disable`;
    appendFileSync(join(data, "postgresql.auto.conf"), `primary_conninfo = '${address}'\n`);
    if (serverUser !== undefined) {
      const { uid, gid } = serverUser;
      for (const name of ["server.log", "backup_label", "standby.signal", "postgresql.auto.conf"])
        chownSync(join(data, name), uid, gid);
    }
  });
}

async function positionOf(url: string, position: string): Promise<bigint> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ bytes: string }>(`select ${position} - '0/0'::pg_lsn as bytes`);
    return BigInt(rows[0]!.bytes ?? 0);
  });
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, application_name: "tape chaos" });
  client.on("error", () => {});
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

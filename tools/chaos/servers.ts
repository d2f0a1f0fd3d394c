import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { systemClock } from "../../src/base/clock.ts";
import { type Random, seededRandom } from "../../src/base/random.ts";

const script = fileURLToPath(new URL("server-process.ts", import.meta.url));

/** One server of several on a store. It comes back on the same port, as behind a service's address. */
export class ServerReplica {
  readonly #store: string;
  readonly #log: string;
  #process: ChildProcess | undefined;
  #port = 0;
  #killed: ChildProcess | undefined;
  up = false;
  readonly collapses: string[] = [];

  constructor(slot: number, store: string, folder: string) {
    this.#store = store;
    this.#log = join(folder, `server-${slot}.log`);
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  async start(): Promise<void> {
    const child = fork(script, [this.#store, String(this.#port), this.#log], {
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process = child;
    const said = await new Promise<string | undefined>((resolve) => {
      child.once("message", (url) => resolve(String(url)));
      child.once("exit", (code, signal) => {
        resolve(undefined);
        if (this.#process === child) this.up = false;
        if (this.#killed !== child)
          this.collapses.push(`a server ended though nobody had killed it (${signal ?? code})`);
      });
    });
    if (said === undefined) return;
    this.#port = Number(new URL(said).port);
    this.up = true;
  }

  kill(): void {
    this.up = false;
    this.#killed = this.#process;
    this.#process?.kill("SIGKILL");
  }
}

/** Servers die and come back; connections of theirs to the database are cut in the middle of whatever they carry. */
export class Outages {
  readonly #servers: readonly ServerReplica[];
  readonly #database: string;
  readonly #random: Random;
  readonly #mending = new Set<Promise<void>>();
  servers = 0;
  connections = 0;

  constructor(servers: readonly ServerReplica[], database: string, seed: string) {
    this.#servers = servers;
    this.#database = database;
    this.#random = seededRandom(`${seed} outages`);
  }

  async rage(signal: AbortSignal): Promise<void> {
    const client = new pg.Client({ connectionString: this.#database, application_name: "tape chaos" });
    await client.connect();
    try {
      while (!signal.aborted) {
        await systemClock.sleep(200 + this.#random.int(600), signal);
        if (signal.aborted) break;
        if (this.servers <= this.connections) this.#killServer();
        else await this.#cutConnections(client);
      }
      await Promise.all(this.#mending);
    } finally {
      await client.end();
    }
  }

  /** One must be left, or there is nobody whom a call could have reached. */
  #killServer(): void {
    const up = this.#servers.filter((server) => server.up);
    if (up.length < 2) return;
    const server = up[this.#random.int(up.length)]!;
    server.kill();
    this.servers++;
    const mending = systemClock
      .sleep(100 + this.#random.int(500))
      .then(() => server.start())
      .finally(() => this.#mending.delete(mending));
    this.#mending.add(mending);
  }

  async #cutConnections(client: pg.Client): Promise<void> {
    const { rows } = await client.query<{ cut: boolean }>(
      `select pg_terminate_backend(pid) as cut from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'
       order by random() limit 2`,
    );
    this.connections += rows.filter(({ cut }) => cut).length;
  }
}

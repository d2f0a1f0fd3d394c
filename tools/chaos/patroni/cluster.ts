import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, closeSync, mkdirSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import { serverUser } from "../../../test/postgres/binaries.ts";
import { freePort } from "../../../test/postgres/server.ts";
import { makeReadable } from "../tools.ts";
import { type Link, startLink } from "./link.ts";
import type { ClusterPrograms } from "./programs.ts";

/** The shortest TTL that Patroni documents; the rule is loop_wait + 2 × retry_timeout ≤ ttl. */
export const ttlSeconds = 20;
const loopSeconds = 2;
const retrySeconds = 5;
const patienceMs = 180_000;

export interface Member {
  readonly name: string;
  readonly port: number;
  readonly rest: number;
  readonly folder: string;
  /** Its way to etcd. */
  readonly link: Link;
  process: ChildProcess | undefined;
}

/** Three PostgreSQL servers under Patroni with a synchronous standby, and one etcd. */
export class PatroniCluster {
  readonly members: Member[] = [];
  readonly #programs: ClusterPrograms;
  readonly #folder: string;
  #etcd: ChildProcess | undefined;

  private constructor(programs: ClusterPrograms, folder: string) {
    this.#programs = programs;
    this.#folder = folder;
    process.on("exit", this.#killAll);
  }

  static async start(programs: ClusterPrograms, folder: string): Promise<PatroniCluster> {
    makeReadable(folder);
    const cluster = new PatroniCluster(programs, folder);
    try {
      const etcd = await cluster.#startEtcd();
      for (let k = 1; k <= 3; k++) {
        const [port, rest, link] = [await freePort(), await freePort(), await startLink(etcd)];
        const member: Member = {
          name: `m${k}`,
          port,
          rest,
          folder: cluster.#own(`m${k}`),
          link,
          process: undefined,
        };
        cluster.members.push(member);
        cluster.run(member);
        if (k === 1) await cluster.#until(async () => (await cluster.leader())?.name === "m1", "no first leader");
      }
      await cluster.healthy();
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }

  /** A folder of the servers' user. */
  #own(name: string): string {
    const folder = join(this.#folder, name);
    mkdirSync(folder);
    if (serverUser !== undefined) chownSync(folder, serverUser.uid, serverUser.gid);
    return folder;
  }

  #spawn(program: string, args: readonly string[], log: string): ChildProcess {
    const file = openSync(join(this.#folder, log), "a");
    const child = spawn(program, args, {
      ...serverUser,
      cwd: "/",
      env: { ...process.env, ...this.#programs.env, HOME: this.#folder },
      detached: true,
      stdio: ["ignore", file, file],
    });
    closeSync(file);
    child.on("error", () => {});
    child.unref();
    return child;
  }

  async #startEtcd(): Promise<number> {
    const [client, peer] = [await freePort(), await freePort()];
    const url = (port: number): string => `http://127.0.0.1:${port}`;
    const flags = {
      name: "etcd",
      "data-dir": this.#own("etcd"),
      "listen-client-urls": url(client),
      "advertise-client-urls": url(client),
      "listen-peer-urls": url(peer),
      "initial-advertise-peer-urls": url(peer),
      "initial-cluster": `etcd=${url(peer)}`,
      "unsafe-no-fsync": "true", // it survives every fault here
    };
    const args = Object.entries(flags).map(([key, value]) => `--${key}=${value}`);
    this.#etcd = this.#spawn(this.#programs.etcd, args, "etcd.log");
    await this.#until(async () => (await fetch(`${url(client)}/health`)).ok, "etcd does not start");
    return client;
  }

  /** Starts Patroni, which starts or repairs its PostgreSQL. */
  run(member: Member): void {
    const file = join(member.folder, "patroni.json"); // JSON is YAML
    writeFileSync(file, JSON.stringify(this.#config(member), null, 2));
    member.process = this.#spawn(this.#programs.python, [this.#programs.patroni, file], `${member.name}.log`);
  }

  #config({ name, port, rest, folder, link }: Member): object {
    const parameters = { unix_socket_directories: "", max_connections: 200, wal_keep_size: "512MB" };
    const dcs = {
      ...{ ttl: ttlSeconds, loop_wait: loopSeconds, retry_timeout: retrySeconds },
      synchronous_mode: true,
      maximum_lag_on_failover: 1_048_576,
      postgresql: { use_pg_rewind: true, use_slots: true, parameters },
    };
    return {
      scope: "tape",
      name,
      restapi: { listen: `127.0.0.1:${rest}`, connect_address: `127.0.0.1:${rest}` },
      // Otherwise Patroni asks etcd for its own address, and leaves the link aside.
      etcd3: { hosts: [`127.0.0.1:${link.port}`], use_proxies: true },
      bootstrap: { dcs, initdb: [{ encoding: "UTF8" }, { locale: "C" }, "data-checksums"] },
      postgresql: {
        listen: `127.0.0.1:${port}`,
        connect_address: `127.0.0.1:${port}`,
        data_dir: join(folder, "data"),
        bin_dir: this.#programs.postgres,
        pgpass: join(folder, "pgpass"),
        pg_hba: ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
        authentication: {
          superuser: { username: "tape" },
          replication: { username: "replicator" },
          rewind: { username: "tape" },
        },
        parameters,
      },
    };
  }

  /** The member that accepts writes, as its own Patroni says; undefined: none does. */
  async leader(): Promise<Member | undefined> {
    const answers = await Promise.all(this.members.map((member) => isLeader(member)));
    return this.members.find((_, k) => answers[k]);
  }

  /** Waits until all members follow one leader, one of them synchronously, as PostgreSQL and Patroni agree. */
  async healthy(): Promise<void> {
    await this.#until(async () => {
      const leader = await this.leader();
      if (leader === undefined) return false;
      const { rows } = await ask(
        leader.port,
        "select application_name as name, sync_state from pg_stat_replication where state = 'streaming'",
      );
      const following = (rows as Follower[]).filter(({ name }) => this.members.some((member) => member.name === name));
      const synchronous = following.find(({ sync_state }) => sync_state === "sync")?.name;
      if (following.length < this.members.length - 1 || synchronous === undefined) return false;
      const response = await fetch(`http://127.0.0.1:${leader.rest}/cluster`, { signal: AbortSignal.timeout(1_000) });
      const { members } = (await response.json()) as { members: readonly { name: string; role: string }[] };
      return members.some(({ name, role }) => role === "sync_standby" && name === synchronous);
    }, "the cluster does not recover");
  }

  /** Patroni, its PostgreSQL and every process of that. */
  pidsOf({ process: patroni, folder }: Member): number[] {
    const postmaster = postmasterOf(folder);
    const parents = [patroni?.pid, postmaster].filter((pid) => pid !== undefined);
    return [...parents, ...(postmaster === undefined ? [] : childrenOf(postmaster))];
  }

  signal(member: Member, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): void {
    for (const pid of this.pidsOf(member)) send(pid, signal);
  }

  /** Waits for a leader other than this one. */
  async successor(former: Member): Promise<Member> {
    let found: Member | undefined;
    await this.#until(async () => {
      found = await this.leader();
      return found !== undefined && found !== former;
    }, "no other member is promoted");
    return found!;
  }

  /** The end of a member's log. */
  logOf({ name }: Member): string {
    return readFileSync(join(this.#folder, `${name}.log`), "utf8")
      .split("\n")
      .slice(-30)
      .join("\n");
  }

  async #until(yes: () => Promise<boolean>, otherwise: string): Promise<void> {
    const end = systemClock.mono() + patienceMs;
    while (!(await yes().catch(() => false))) {
      if (systemClock.mono() > end) {
        throw new Error([otherwise, ...this.members.map((member) => this.logOf(member))].join("\n"));
      }
      await systemClock.sleep(200);
    }
  }

  readonly #killAll = (): void => {
    for (const member of this.members) {
      this.signal(member, "SIGCONT");
      this.signal(member, "SIGKILL");
    }
    if (this.#etcd?.pid !== undefined) send(this.#etcd.pid, "SIGKILL");
  };

  async stop(): Promise<void> {
    this.#killAll();
    process.off("exit", this.#killAll);
    await Promise.all(this.members.map(({ link }) => link.close()));
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // it has ended
  }
}

function postmasterOf(folder: string): number | undefined {
  try {
    const pid = Number(readFileSync(join(folder, "data", "postmaster.pid"), "utf8").split("\n")[0]);
    return commandOf(pid).includes("postgres") ? pid : undefined; // the file of a killed server stays
  } catch {
    return undefined;
  }
}

const commandOf = (pid: number): string => readFileSync(`/proc/${pid}/comm`, "utf8");

function childrenOf(parent: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return Number(/\) \S (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, "utf8"))?.[1]) === parent;
      } catch {
        return false;
      }
    });
}

interface Follower {
  readonly name: string;
  readonly sync_state: string;
}

async function isLeader({ rest }: Member): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${rest}/primary`, { signal: AbortSignal.timeout(1_000) })).ok;
  } catch {
    return false;
  }
}

export async function ask(port: number, text: string): Promise<pg.QueryResult> {
  const client = new pg.Client({
    connectionString: `postgres://tape@127.0.0.1:${port}/postgres`,
    application_name: "tape chaos",
    connectionTimeoutMillis: 2_000,
    query_timeout: 5_000,
  });
  client.on("error", () => {});
  try {
    await client.connect();
    return await client.query(text);
  } finally {
    void client.end().catch(() => {});
  }
}

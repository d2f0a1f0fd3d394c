import { fork } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { startPostgres } from "../../test/postgres/server.ts";
import { type Address, Member } from "./member.ts";

/** The tenant that floods, and the two beside it. */
export const noisy = "acme";
export const quiet = ["globex", "initech"] as const;
const workersEach = 4;

export type Backend = "sqlite" | "postgres";
/** Each process on the store itself, or all of them through one server. */
export type Way = "embedded" | "server";

/** A store of its own with twelve workers of three tenants, and a caller for each of the two quiet ones. */
export interface Site {
  readonly place: Address;
  /** How long runs of the quiet tenants take, one after the other. */
  latencies(ms: number): Promise<number[]>;
  /** Processor time of the workers and of the database, in percent of one core, while nothing happens. */
  idle(ms: number): Promise<number>;
  close(): Promise<void>;
}

export async function openSite(backend: Backend, way: Way): Promise<Site> {
  const near = backend === "sqlite" ? await file() : await server();
  const place = way === "embedded" ? near : await behindServer(near);
  const members: Member[] = [];
  const add = async (role: "worker" | "caller", tenant: string): Promise<Member> => {
    const member = await Member.open(role, place, tenant);
    members.push(member);
    return member;
  };
  const workers: Member[] = [];
  // One after the other: twelve that open at once are a load of their own.
  for (const tenant of [noisy, ...quiet])
    for (let k = 0; k < workersEach; k++) workers.push(await add("worker", tenant));
  const callers: Member[] = [];
  for (const tenant of quiet) callers.push(await add("caller", tenant));
  return {
    place,
    async latencies(ms) {
      const measured = await Promise.all(callers.map((caller) => caller.ask({ do: "measure", ms }, "measured")));
      return measured.flatMap(({ latencies }) => latencies);
    },
    async idle(ms) {
      const used = (): number =>
        [...workers.map(({ pid }) => pid), ...place.pids()].reduce((sum, pid) => sum + cpuMs(pid), 0);
      const [before, started] = [used(), performance.now()];
      await pause(ms);
      return ((used() - before) * 100) / (performance.now() - started);
    },
    async close() {
      await Promise.all(members.map((member) => member.close()));
      await place.close();
    },
  };
}

interface Place extends Address {
  /** The processes of the database. */
  pids(): number[];
  close(): Promise<void>;
}

async function file(): Promise<Place> {
  const folder = await mkdtemp(join(tmpdir(), "tape-neighbours-"));
  return {
    url: `sqlite:${join(folder, "tape.db")}`,
    pids: () => [],
    close: () => rm(folder, { recursive: true, force: true }),
  };
}

async function server(): Promise<Place> {
  const postgres = await startPostgres({ major: 18, settings: {} });
  return {
    url: postgres.url,
    pids: () => [postgres.pid, ...childrenOf(postgres.pid)],
    close: () => postgres.stop(),
  };
}

/** One server for everybody, a token for each tenant. */
async function behindServer(near: Place): Promise<Place> {
  const child = fork(join(import.meta.dirname, "server.ts"), [near.url, noisy, ...quiet]);
  const gone = once(child, "exit");
  const [report] = (await once(child, "message")) as [Required<Address>];
  return {
    ...report,
    pids: () => [child.pid ?? 0, ...near.pids()],
    async close() {
      child.kill("SIGTERM");
      await gone;
      await near.close();
    },
  };
}

/** undefined: it has just ended. */
function statOf(pid: number): string[] | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ");
  } catch {
    return undefined;
  }
}

function childrenOf(pid: number): number[] {
  const pids = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
  return pids.filter((one) => Number(statOf(one)?.[1]) === pid);
}

const tickMs = 10;
function cpuMs(pid: number): number {
  const fields = statOf(pid);
  return fields === undefined ? 0 : (Number(fields[11]) + Number(fields[12])) * tickMs;
}

import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { openStore } from "../../src/host/open-store.ts";
import type { Role } from "../../src/protocol/route.ts";
import type { Store } from "../../src/store/contract/store.ts";
import { dropDatabase, freshDatabase } from "../postgres/database.ts";
import { giveTokens, tokenOf } from "../server/scene.ts";
import { bootstrap } from "../server/stage.ts";
import type { Seen } from "./prober.ts";

export type Backend = "sqlite" | "postgres";
export const backends: readonly Backend[] = ["sqlite", "postgres"];

export interface Heard {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The answer, where it is JSON. */
  readonly json: unknown;
}

export interface Said {
  readonly token?: string;
  /** An object goes as JSON, bytes as they are. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** What a piece of work did to everybody else. */
export interface Effect<T> {
  readonly result: T;
  /** The longest answer of /livez meanwhile, over the worst of the quiet server and of an idle process meanwhile. */
  readonly stall: number;
  /** Milliseconds of it that the machine does not explain. */
  readonly excess: number;
  /** The server's largest memory meanwhile, over its largest before. 1 where the system does not say. */
  readonly growth: number;
  /** For messages. */
  readonly said: string;
}

export interface Ground {
  readonly url: string;
  readonly port: number;
  /** The same store, from this process. */
  readonly store: Store;
  readonly storeUrl: string;
  token(tenant: "acme" | "globex", role: Role): string;
  /** `id.secret` of the admin of the server's own tenant, `home`. */
  readonly bootstrap: string;
  call(method: string, path: string, said?: Said): Promise<Heard>;
  /** Sends these bytes and hears what comes until the connection ends, or `withinMs` are over. */
  raw(bytes: string | Uint8Array, withinMs?: number): Promise<string>;
  measured<T>(work: () => Promise<T>): Promise<Effect<T>>;
  /** The server stands still for so long (SIGSTOP). */
  pausedFor(ms: number): Promise<void>;
  /** The server's process still runs. */
  alive(): boolean;
  /** What it wrote to standard error. */
  log(): string;
  close(): Promise<void>;
}

export interface GroundOptions {
  /** The store's URL; it must be empty. */
  readonly store: string;
  /** More settings, as in `tape.server.limits.requests=4`. */
  readonly set?: readonly string[];
  /** Flags of Node for the server's process. */
  readonly node?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** A quiet measurement of so many answers; the machine's noise shows within them. */
const quietProbes = 40;
/**
 * Answers below this are the scheduler's business: a ratio to less would measure the machine, because three test files
 * share two cores. Against a floor of 10 ms, worst answers of 145 and 246 ms made the suite red now and then. The attacks
 * that these tests are about cost from 700 ms to half a minute.
 */
const floorMs = 40;

export const packed = (value: unknown): Uint8Array =>
  gzipSync(typeof value === "string" ? value : JSON.stringify(value));

export async function freshStore(
  backend: Backend,
  postgres: () => string,
): Promise<{ readonly url: string; clear(): Promise<void> }> {
  if (backend === "postgres") {
    const url = await freshDatabase(postgres());
    return { url, clear: () => dropDatabase(url) };
  }
  const folder = mkdtempSync(join(tmpdir(), "tape-attack-"));
  return {
    url: `sqlite:${join(folder, "t.db")}`,
    clear: async () => rmSync(folder, { recursive: true, force: true }),
  };
}

export async function openGround(options: GroundOptions): Promise<Ground> {
  const { store: storeUrl } = options;
  const store = await openStore(storeUrl);
  for (const tenant of ["acme", "globex"]) await giveTokens(store, tenant);
  const served = await startServer(options);
  const { port, process: server } = served;
  const prober = await startProber(port, server.pid!);
  const { report } = prober;
  const alive = (): boolean => server.exitCode === null && server.signalCode === null;
  const url = `http://127.0.0.1:${port}`;
  return {
    ...{ url, port, store, storeUrl, bootstrap, token: tokenOf, alive, log: served.log },
    call: (method, path, said) => call(`${url}${path}`, method, said),
    raw: (bytes, withinMs = 5_000) => raw(port, bytes, withinMs),
    async measured(work) {
      let quiet = await report();
      for (const probes: Seen[] = []; probes.reduce((sum, one) => sum + one.server.length, 0) < quietProbes; ) {
        await new Promise((later) => setTimeout(later, 20));
        probes.push(await report());
        quiet = joined(probes);
      }
      const result = await work();
      const meanwhile = await report();
      const worst = Math.max(0, ...meanwhile.server);
      const noise = Math.max(floorMs, ...quiet.server, ...meanwhile.control);
      const stall = worst / noise;
      const growth = quiet.rss === 0 ? 1 : meanwhile.rss / quiet.rss;
      const mib = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`;
      const said = `worst ${worst.toFixed(0)} ms, noise ${noise.toFixed(0)} ms, memory ${mib(quiet.rss)} to ${mib(meanwhile.rss)}`;
      return { result, stall, growth, said, excess: meanwhile.excess };
    },
    async pausedFor(ms) {
      server.kill("SIGSTOP");
      await new Promise((later) => setTimeout(later, ms));
      server.kill("SIGCONT");
      await call(`${url}/livez`, "GET");
    },
    async close() {
      prober.stop();
      server.kill("SIGKILL");
      await served.gone;
      await store.close();
    },
  };
}

function joined(probes: readonly Seen[]): Seen {
  const server = probes.flatMap((one) => one.server);
  const control = probes.flatMap((one) => one.control);
  const most = (of: (seen: Seen) => number): number => Math.max(...probes.map(of));
  return { server, control, rss: most(({ rss }) => rss), excess: most(({ excess }) => excess) };
}

/** A server in a process of its own. */
export interface Served {
  readonly port: number;
  readonly process: ChildProcess;
  readonly gone: Promise<unknown>;
  log(): string;
}

export async function startServer({ store, set = [], node = [], env = {} }: GroundOptions): Promise<Served> {
  const bin = resolve(import.meta.dirname, "../../bin/durable-tape.js");
  const settings = ["tape.server.credentials=required", "tape.tenant=home", ...set];
  const flags = settings.flatMap((one) => ["--set", one]);
  const child = spawn(
    process.execPath,
    [...node, bin, "serve", "--listen", "127.0.0.1:0", "--store", store, ...flags],
    {
      cwd: tmpdir(),
      env: { ...process.env, TAPE_SERVER_BOOTSTRAP_TOKEN: bootstrap, ...env },
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    },
  );
  const gone = once(child, "exit");
  let log = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log = (log + text).slice(-1_000_000);
  });
  let said = "";
  const port = await new Promise<number>((ready, refuse) => {
    child.once("exit", () => refuse(new Error(`the server ended before it listened: ${said}${log}`)));
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const [, found] = /listening on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(said) ?? [];
      if (found !== undefined) ready(Number(found));
    });
  });
  return { port, process: child, gone, log: () => log };
}

/** Another process that asks the server all the time. */
export interface Prober {
  /** What it has seen since the last report. */
  report(): Promise<Seen>;
  stop(): void;
}

/** Apart enough to leave a core to the attack. */
const probeEveryMs = 5;

export async function startProber(port: number, pid: number, everyMs = probeEveryMs): Promise<Prober> {
  const file = fileURLToPath(new URL("prober.ts", import.meta.url));
  const prober = fork(file, [port, pid, everyMs].map(String), {
    execArgv: [],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  await once(prober, "message");
  return {
    async report() {
      const answer = once(prober, "message") as Promise<[Seen]>;
      prober.send("report");
      return (await answer)[0];
    },
    stop: () => void prober.kill("SIGKILL"),
  };
}

async function call(url: string, method: string, said: Said = {}): Promise<Heard> {
  const { token, body, headers = {}, signal } = said;
  const bytes = body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
  const answer = await fetch(url, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: bytes }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await answer.text();
  const json: unknown = /json/.test(answer.headers.get("content-type") ?? "") ? JSON.parse(text) : undefined;
  return { status: answer.status, headers: answer.headers, text, json };
}

async function raw(port: number, bytes: string | Uint8Array, withinMs: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let heard = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    heard += chunk;
  });
  socket.on("error", () => {}); // a reset is an end too
  socket.setTimeout(withinMs, () => socket.destroy());
  socket.write(bytes);
  await once(socket, "close");
  return heard;
}

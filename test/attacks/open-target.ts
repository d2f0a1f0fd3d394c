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
import type { ProbeReport } from "./prober.ts";

export type Backend = "sqlite" | "postgres";
export const backends: readonly Backend[] = ["sqlite", "postgres"];

export interface CallResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body, if it is JSON. */
  readonly json: unknown;
}

export interface CallOptions {
  readonly token?: string;
  /** An object is sent as JSON, bytes unchanged. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** The impact of some work on other callers. */
export interface Impact<T> {
  readonly result: T;
  /** The slowest response of /livez during the work, relative to that of the idle server and of an idle process. */
  readonly stall: number;
  /** The milliseconds of it that the load of the machine does not explain. */
  readonly excess: number;
  /** The server's peak memory during the work, relative to its peak before. 1 if the system does not report it. */
  readonly growth: number;
  /** For messages of assertions. */
  readonly summary: string;
}

export interface AttackTarget {
  readonly url: string;
  readonly port: number;
  /** The same store, from this process. */
  readonly store: Store;
  readonly storeUrl: string;
  token(tenant: "acme" | "globex", role: Role): string;
  /** `id.secret` of the admin of the server's own tenant, `home`. */
  readonly bootstrap: string;
  call(method: string, path: string, options?: CallOptions): Promise<CallResponse>;
  /** Sends these bytes and returns what is received until the connection ends, or until `withinMs` have passed. */
  raw(bytes: string | Uint8Array, withinMs?: number): Promise<string>;
  measured<T>(work: () => Promise<T>): Promise<Impact<T>>;
  /** Stops the server for this long (SIGSTOP). */
  pausedFor(ms: number): Promise<void>;
  /** Whether the server's process still runs. */
  alive(): boolean;
  /** Its output on standard error. */
  log(): string;
  close(): Promise<void>;
}

export interface TargetOptions {
  /** The URL of an empty store. */
  readonly store: string;
  /** Additional settings, such as `tape.server.limits.requests=4`. */
  readonly set?: readonly string[];
  /** Flags of Node for the server's process. */
  readonly node?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

/** The number of responses in the baseline; enough to include the noise of the machine. */
const baselineProbes = 40;
/**
 * Shorter responses depend on the scheduler: a ratio to less would measure the machine, because three test files share
 * two cores. With a floor of 10 ms, slowest responses of 145 and 246 ms failed the suite now and then. The attacks of
 * these tests cost from 700 ms to half a minute.
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

export async function openTarget(options: TargetOptions): Promise<AttackTarget> {
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
    call: (method, path, options) => call(`${url}${path}`, method, options),
    raw: (bytes, withinMs = 5_000) => raw(port, bytes, withinMs),
    async measured(work) {
      let quiet = await report();
      for (
        const probes: ProbeReport[] = [];
        probes.reduce((sum, one) => sum + one.server.length, 0) < baselineProbes;
      ) {
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
      const memory = `${mib(quiet.rss)} to ${mib(meanwhile.rss)}`;
      const summary = `worst ${worst.toFixed(0)} ms, noise ${noise.toFixed(0)} ms, memory ${memory}`;
      return { result, stall, growth, summary, excess: meanwhile.excess };
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

function joined(probes: readonly ProbeReport[]): ProbeReport {
  const server = probes.flatMap((one) => one.server);
  const control = probes.flatMap((one) => one.control);
  const maxOf = (of: (seen: ProbeReport) => number): number => Math.max(...probes.map(of));
  return { server, control, rss: maxOf(({ rss }) => rss), excess: maxOf(({ excess }) => excess) };
}

/** A server in its own process. */
export interface ServerProcess {
  readonly port: number;
  readonly process: ChildProcess;
  readonly gone: Promise<unknown>;
  log(): string;
}

export async function startServer({ store, set = [], node = [], env = {} }: TargetOptions): Promise<ServerProcess> {
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
  let output = "";
  const port = await new Promise<number>((ready, refuse) => {
    child.once("exit", () => refuse(new Error(`the server exited before it listened: ${output}${log}`)));
    child.stdout!.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const [, found] = /listening on http:\/\/127\.0\.0\.1:(\d+)\n/.exec(output) ?? [];
      if (found !== undefined) ready(Number(found));
    });
  });
  return { port, process: child, gone, log: () => log };
}

/** Another process that sends requests to the server all the time. */
export interface Prober {
  /** Its measurements since the last report. */
  report(): Promise<ProbeReport>;
  stop(): void;
}

/** Long enough to leave a core to the attack. */
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
      const report = once(prober, "message") as Promise<[ProbeReport]>;
      prober.send("report");
      return (await report)[0];
    },
    stop: () => void prober.kill("SIGKILL"),
  };
}

async function call(url: string, method: string, options: CallOptions = {}): Promise<CallResponse> {
  const { token, body, headers = {}, signal } = options;
  const bytes = body instanceof Uint8Array ? new Uint8Array(body) : JSON.stringify(body);
  const response = await fetch(url, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: bytes }),
    ...(signal === undefined ? {} : { signal }),
  });
  const text = await response.text();
  const json: unknown = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, json };
}

async function raw(port: number, bytes: string | Uint8Array, withinMs: number): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  let received = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    received += chunk;
  });
  socket.on("error", () => {}); // a reset also ends the connection
  socket.setTimeout(withinMs, () => socket.destroy());
  socket.write(bytes);
  await once(socket, "close");
  return received;
}

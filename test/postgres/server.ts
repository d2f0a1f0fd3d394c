import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chownSync,
  closeSync,
  existsSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { createServer } from "node:net";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { type Major, nativeFolder, scratchFolder, serverUser } from "./binaries.ts";

export interface PostgresServer {
  readonly url: string;
  readonly major: number;
  /** Process id of the server; 0 for a server given by TAPE_TEST_POSTGRES_URL. */
  readonly pid: number;
  /** Its data folder; empty for a given server. */
  readonly data: string;
  /** `fast` rolls back and shuts down in order, `immediate` is a crash followed by recovery. */
  restart(mode?: "fast" | "immediate"): Promise<void>;
  /** Stops it and keeps its data; `resume` starts it again on the same port. */
  halt(mode?: "fast" | "immediate"): Promise<void>;
  resume(): Promise<void>;
  stop(): Promise<void>;
}

export interface PostgresOptions {
  major: Major;
  /** Settings in addition to ours. Any value (even `{}`) requests a separate server. */
  settings?: Record<string, string>;
  /** Its data folder is created in here. Default: a temporary folder. */
  parent?: string;
  /** Instead of initdb: fills the given empty folder with data. */
  fill?: (data: string) => Promise<void>;
  /** More flags for initdb. */
  init?: readonly string[];
  /** Environment of the server in addition to ours. */
  env?: Record<string, string>;
}

// Durability is under test, so fsync and synchronous_commit stay as in production.
const defaults: Record<string, string> = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  max_connections: "200",
  shared_buffers: "128MB",
  fsync: "on",
  synchronous_commit: "on",
  log_timezone: "UTC",
  timezone: "UTC",
};

// A cold, busy two-core machine needs about three seconds; beyond this something is broken.
const startTimeout = 30_000;

/** A real PostgreSQL of the requested major version, from npm, on a free port of the loopback interface. */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const given = process.env.TAPE_TEST_POSTGRES_URL;
  if (given && options.major === 18 && !options.settings) return givenServer(given);

  const native = nativeFolder(options.major);
  const data = mkdtempSync(join(options.parent ?? scratchFolder(), `tape-postgres-${options.major}-data-`));
  const release = watch(data);
  try {
    if (serverUser) chownSync(data, serverUser.uid, serverUser.gid);
    if (options.fill) await options.fill(data);
    else await initialise(native, data, options.init);
    let server = await launch(native, data, options);
    return {
      url: `postgres://tape@127.0.0.1:${server.port}/postgres`,
      major: options.major,
      get pid() {
        return server.process.pid ?? 0;
      },
      data,
      async restart(mode = "fast") {
        await end(server.process, mode);
        server = await launch(native, data, options, server.port);
      },
      halt: (mode = "fast") => end(server.process, mode),
      async resume() {
        server = await launch(native, data, options, server.port);
      },
      async stop() {
        await end(server.process, "fast");
        rmSync(data, { recursive: true, force: true });
        release();
      },
    };
  } catch (error) {
    rmSync(data, { recursive: true, force: true });
    release();
    throw error;
  }
}

async function givenServer(url: string): Promise<PostgresServer> {
  const client = new pg.Client(url);
  await client.connect();
  const { rows } = await client.query<{ version: string }>("select current_setting('server_version_num') as version");
  await client.end();
  const refuse = async (): Promise<void> => {
    throw new Error("a given server is not ours to restart: pass settings to get a server of your own");
  };
  return {
    url,
    major: Math.floor(Number(rows[0]?.version) / 10_000),
    pid: 0,
    data: "",
    restart: refuse,
    halt: refuse,
    resume: refuse,
    stop: async () => {},
  };
}

/** initdb creates the same folder every time: created once and copied, it costs a tenth. */
async function initialise(native: string, data: string, more: readonly string[] = []): Promise<void> {
  if (more.length > 0 || process.platform === "win32") return initdb(native, data, more);
  const uid = serverUser?.uid ?? process.getuid?.();
  const made = join(scratchFolder(), `${basename(native)}-initialised-${uid}`);
  if (!existsSync(made)) {
    const draft = mkdtempSync(`${made}.`);
    try {
      if (serverUser) chownSync(draft, serverUser.uid, serverUser.gid);
      await initdb(native, draft);
      renameSync(draft, made);
    } catch (error) {
      rmSync(draft, { recursive: true, force: true });
      if (!existsSync(made)) throw error; // otherwise another process was faster
    }
  }
  // The temporary folder is shared: files of another user must not be run.
  if (statSync(made).uid !== uid) throw new Error(`${made} belongs to another user: remove it`);
  await finished("cp", ["-a", `${made}/.`, data], native);
}

async function initdb(native: string, data: string, more: readonly string[] = []): Promise<void> {
  const flags = ["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "--username=tape", ...more];
  await finished(join(native, "bin", "initdb"), [...flags, "--pgdata", data], native);
}

async function finished(program: string, args: readonly string[], cwd: string): Promise<void> {
  const child = spawn(program, args, { ...serverUser, cwd, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  child.stdout.on("data", (chunk) => (output += chunk));
  child.stderr.on("data", (chunk) => (output += chunk));
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${basename(program)} ended with ${code}\n${output}`);
}

interface RunningServer {
  process: ChildProcess;
  port: number;
}

/** Between finding a free port and binding it another process may take it; with a given port there is no second try. */
async function launch(native: string, data: string, options: PostgresOptions, port?: number): Promise<RunningServer> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await launchOnce(native, data, options, port ?? (await freePort()));
    } catch (error) {
      if (port || attempt === 5 || !String(error).includes("Address already in use")) throw error;
    }
  }
}

async function launchOnce(
  native: string,
  data: string,
  { settings, env }: PostgresOptions,
  port: number,
): Promise<RunningServer> {
  const flags = Object.entries({ ...defaults, ...settings, port: `${port}` }).flatMap(([k, v]) => ["-c", `${k}=${v}`]);
  const log = openSync(join(data, "server.log"), "a");
  const child = spawn(join(native, "bin", "postgres"), ["-D", data, ...flags], {
    ...serverUser,
    cwd: native,
    ...(env === undefined ? {} : { env: { ...process.env, ...env } }),
    // Its own session: Ctrl-C must reach the test run, which then stops the server in order.
    detached: true,
    stdio: ["ignore", log, log],
  });
  closeSync(log);
  running.add(child);
  child.once("exit", () => running.delete(child));
  // A program that forgets stop() still ends, and the server with it.
  child.unref();
  await ready(child, port, data);
  return { process: child, port };
}

async function ready(child: ChildProcess, port: number, data: string): Promise<void> {
  const deadline = Date.now() + startTimeout;
  let spawnError: Error | undefined;
  child.once("error", (error) => {
    spawnError = error;
  });
  for (;;) {
    if (spawnError) throw spawnError;
    if (ended(child)) throw new Error(`PostgreSQL ended while starting\n${logTail(data)}`);
    const client = new pg.Client({ host: "127.0.0.1", port, user: "tape", database: "postgres" });
    client.on("error", () => {});
    try {
      await client.connect();
      await client.end();
      return;
    } catch (error) {
      if (Date.now() > deadline) {
        child.kill("SIGQUIT");
        throw new Error(`PostgreSQL did not answer within ${startTimeout} ms\n${logTail(data)}`, { cause: error });
      }
      await delay(20);
    }
  }
}

function logTail(data: string): string {
  const log = join(data, "server.log");
  return existsSync(log) ? readFileSync(log, "utf8").split("\n").slice(-20).join("\n") : "";
}

function ended(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

async function end(child: ChildProcess, mode: "fast" | "immediate"): Promise<void> {
  if (ended(child)) return;
  child.ref();
  child.kill(mode === "fast" ? "SIGINT" : "SIGQUIT");
  await once(child, "exit");
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (!address || typeof address === "string") throw new Error("no port");
  return address.port;
}

const running = new Set<ChildProcess>();

function killAll(): void {
  for (const child of running) child.kill("SIGQUIT");
}

process.on("exit", killAll);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    // With another listener the program ends in its own way, and `exit` or stop() does the rest.
    if (process.listenerCount(signal) > 0) return;
    killAll();
    process.kill(process.pid, signal);
  });
}

// Ends the server and removes its folder as soon as the pipe to this process closes, however this process died. A
// negative number in postmaster.pid is initdb's own single-user server, which ends on its own. The wait is bounded
// because a container without an init never reaps the server, and kill -0 keeps finding it.
const watchdog = `
cat > /dev/null
pid=$(head -n 1 "$1/postmaster.pid" 2> /dev/null)
case "$pid" in
  "" | -*) ;;
  *)
    kill -QUIT "$pid"
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
      kill -0 "$pid" && sleep 0.1
    done
    ;;
esac
rm -rf "$1"
`;

function watch(data: string): () => void {
  if (process.platform === "win32") return () => {};
  const child = spawn("/bin/sh", ["-c", watchdog, "watchdog", data], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  child.unref();
  const pipe = child.stdin as typeof child.stdin & { unref?(): void };
  pipe.unref?.();
  pipe.on("error", () => {});
  return () => pipe.end();
}

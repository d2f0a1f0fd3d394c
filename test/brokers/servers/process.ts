import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** A server program that runs in a temporary folder until the test stops it. */
export interface ServerProcess {
  readonly folder: string;
  readonly pid: number;
  /** What it has printed so far. */
  readonly output: () => string;
  /** The same command again, after `kill`, with the same folder. */
  start(): Promise<void>;
  /** SIGKILL: the server cannot tidy up. */
  kill(): Promise<void>;
  pause(): void;
  resume(): void;
  /** Kills it and removes its folder. */
  stop(): Promise<void>;
}

export interface ServerCommand {
  readonly name: string;
  readonly path: string;
  readonly args: (folder: string) => readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Resolves to true when the server answers. */
  readonly ready: (output: string) => boolean | Promise<boolean>;
}

const startMs = 30_000;
const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

export async function startServer(command: ServerCommand): Promise<ServerProcess> {
  const folder = mkdtempSync(join(tmpdir(), `tape-${command.name}-`));
  let { child, output } = launch(command, folder);
  const kill = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  };
  const stop = async (): Promise<void> => {
    await kill();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await answered(command, child, () => output());
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    folder,
    get pid() {
      return child.pid!;
    },
    output: () => output(),
    async start() {
      ({ child, output } = launch(command, folder));
      await answered(command, child, () => output());
    },
    kill,
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    stop,
  };
}

function launch(command: ServerCommand, folder: string): { child: ChildProcess; output: () => string } {
  const child = spawn(command.path, command.args(folder), {
    cwd: folder,
    env: { ...process.env, ...command.env },
    // Standard input stays open: kcat ends with it.
    stdio: ["pipe", "pipe", "pipe"],
  });
  running.add(child);
  child.once("exit", () => running.delete(child));
  let text = "";
  for (const stream of [child.stdout!, child.stderr!]) {
    // A server that logs every request would fill the memory of the test.
    stream.on("data", (data: Buffer) => (text = `${text}${data}`.slice(0, 100_000)));
  }
  return { child, output: () => text };
}

async function answered({ name, ready }: ServerCommand, child: ChildProcess, output: () => string): Promise<void> {
  const end = performance.now() + startMs;
  while (!(await ready(output()))) {
    if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}: ${output()}`);
    if (performance.now() > end) throw new Error(`${name} does not answer: ${output()}`);
    await delay(25);
  }
}

/** Whether a port of the loopback interface accepts connections. */
export async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

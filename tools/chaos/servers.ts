import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { anyOf, type Deployment, type Fault } from "./fault.ts";

const script = fileURLToPath(new URL("server-process.ts", import.meta.url));

/** One of several servers on a store. It restarts on the same port, as behind a service's address. */
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
    const address = await new Promise<string | undefined>((resolve) => {
      child.once("message", (url) => resolve(String(url)));
      child.once("exit", (code, signal) => {
        resolve(undefined);
        if (this.#process === child) this.up = false;
        if (this.#killed !== child) this.collapses.push(`a server ended without being killed (${signal ?? code})`);
      });
    });
    if (address === undefined) return;
    this.#port = Number(new URL(address).port);
    this.up = true;
  }

  kill(): void {
    this.up = false;
    this.#killed = this.#process;
    this.#process?.kill("SIGKILL");
  }
}

export const serverKind = "kill -9 of a server";

/** Kills and restarts servers. One stays up, so that calls can always reach a server. */
export function serverFault({ random, injections, repair }: Deployment, servers: readonly ServerReplica[]): Fault {
  return {
    kind: serverKind,
    effectiveWhen: "the server was one that workers were connected to",
    weight: 1,
    initial: 2,
    async inject() {
      const up = servers.filter((server) => server.up);
      const server = up.length > 1 ? anyOf(up, random) : undefined;
      if (server === undefined) return;
      server.kill();
      repair(
        systemClock.sleep(100 + random.int(500)).then(async () => {
          await server.start();
          injections.push({
            kind: serverKind,
            effective: true,
            hit: ["one of several servers"],
            outcome: ["started again"],
          });
        }),
      );
    },
  };
}

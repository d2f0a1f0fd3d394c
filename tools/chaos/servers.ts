import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { anyOf, type Deployment, type Fault } from "./strike.ts";

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

export const serverKind = "kill -9 of a server";

/** Servers die and come back. One is left, or there is nobody whom a call could have reached. */
export function serverFault({ random, strikes, mend }: Deployment, servers: readonly ServerReplica[]): Fault {
  return {
    kind: serverKind,
    counts: "the server was one that workers were connected to",
    weight: 1,
    first: 2,
    async play() {
      const up = servers.filter((server) => server.up);
      const server = up.length > 1 ? anyOf(up, random) : undefined;
      if (server === undefined) return;
      server.kill();
      mend(
        systemClock.sleep(100 + random.int(500)).then(async () => {
          await server.start();
          strikes.push({ kind: serverKind, bitten: true, hit: ["one of several servers"], outcome: ["started again"] });
        }),
      );
    },
  };
}

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../src/base/random.ts";
import type { Tape } from "../../src/host/tape.ts";
import { type Entry, Load, LoadLog } from "./load.ts";
import type { LoaderOptions } from "./load-process.ts";
import type { Flow } from "./program.ts";

/** Starts runs, in this process or in one of its own. */
export interface Loader {
  readonly log: LoadLog;
  start(): Promise<void>;
  pause(on: boolean): void;
  /** Resolves once it has ended. */
  kill(): Promise<void>;
  /** Starts no more runs; resolves when every started run has its answers. */
  finish(): Promise<void>;
}

export function loaderHere(client: Tape, flows: Readonly<Record<string, Flow>>, seed: string, maxLive: number): Loader {
  const log = new LoadLog();
  const stop = new AbortController();
  const random = seededRandom(`${seed} load`);
  const load = new Load({ client, flows, random, maxLive, incarnation: 1, note: (entry) => log.note(entry) });
  let loading = Promise.resolve();
  return {
    log,
    start: async () => {
      loading = load.run(stop.signal);
      loading.catch(() => {}); // finish() rejects with it
    },
    pause: () => {}, // no fault stops this process
    kill: async () => stop.abort(),
    finish: () => {
      stop.abort();
      return loading;
    },
  };
}

const script = fileURLToPath(new URL("load-process.ts", import.meta.url));

export class LoaderProcess implements Loader {
  readonly log = new LoadLog();
  readonly #options: Omit<LoaderOptions, "incarnation" | "open">;
  readonly #env: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;
  #incarnation = 0;

  constructor(options: Omit<LoaderOptions, "incarnation" | "open">, env: Readonly<Record<string, string>>) {
    this.#options = options;
    this.#env = env;
  }

  async start(): Promise<void> {
    const options: LoaderOptions = { ...this.#options, incarnation: ++this.#incarnation, open: this.log.open };
    const child = fork(script, [JSON.stringify(options)], {
      env: { ...process.env, ...this.#env },
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      child.on("message", (entry: Entry | "ready") => {
        if (entry === "ready") resolve();
        else this.log.note(entry);
      });
      child.once("exit", (code) => {
        if (child.killed || code === 0) resolve();
        else reject(new Error(`the loader ended with ${code}`));
      });
    });
  }

  pause(on: boolean): void {
    this.#process?.kill(on ? "SIGSTOP" : "SIGCONT");
  }

  async kill(): Promise<void> {
    const child = this.#process;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  async finish(): Promise<void> {
    const child = this.#process;
    if (child === undefined) return;
    const ended = child.exitCode === null ? once(child, "exit") : [child.exitCode];
    if (child.connected) child.send("stop");
    const [code] = await ended;
    if (code !== 0) throw new Error(`the loader ended with ${code}`);
  }
}

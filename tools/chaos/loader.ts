import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { seededRandom } from "../../src/base/random.ts";
import type { Tape } from "../../src/host/tape.ts";
import { Book, type Entry, Load } from "./load.ts";
import type { LoadOrders } from "./load-process.ts";
import type { Flow } from "./program.ts";

/** Whoever starts runs, in this process or in one of its own. */
export interface Loader {
  readonly book: Book;
  start(): Promise<void>;
  pause(on: boolean): void;
  /** Resolves once it is gone. */
  kill(): Promise<void>;
  /** Starts no more; resolves when everything that was begun is answered. */
  finish(): Promise<void>;
}

export function loaderHere(client: Tape, flows: Readonly<Record<string, Flow>>, seed: string, most: number): Loader {
  const book = new Book();
  const calm = new AbortController();
  const random = seededRandom(`${seed} load`);
  const load = new Load({ client, flows, random, most, incarnation: 1, note: (entry) => book.note(entry) });
  let going = Promise.resolve();
  return {
    book,
    start: async () => {
      going = load.go(calm.signal);
      going.catch(() => {}); // whoever finishes hears of it
    },
    pause: () => {}, // it is not among those that are stopped
    kill: async () => calm.abort(),
    finish: () => {
      calm.abort();
      return going;
    },
  };
}

const script = fileURLToPath(new URL("load-process.ts", import.meta.url));

export class LoaderProcess implements Loader {
  readonly book = new Book();
  readonly #orders: Omit<LoadOrders, "incarnation" | "open">;
  readonly #env: Readonly<Record<string, string>>;
  #process: ChildProcess | undefined;
  #incarnation = 0;

  constructor(orders: Omit<LoadOrders, "incarnation" | "open">, env: Readonly<Record<string, string>>) {
    this.#orders = orders;
    this.#env = env;
  }

  async start(): Promise<void> {
    const orders: LoadOrders = { ...this.#orders, incarnation: ++this.#incarnation, open: this.book.open };
    const child = fork(script, [JSON.stringify(orders)], {
      env: { ...process.env, ...this.#env },
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process = child;
    await new Promise<void>((resolve, reject) => {
      child.on("message", (entry: Entry | "ready") => {
        if (entry === "ready") resolve();
        else this.book.note(entry);
      });
      child.once("exit", (code) => {
        if (child.killed || code === 0) resolve();
        else reject(new Error(`whoever starts runs ended with ${code}`));
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
    if (child.connected) child.send("calm");
    const [code] = await ended;
    if (code !== 0) throw new Error(`whoever starts runs ended with ${code}`);
  }
}

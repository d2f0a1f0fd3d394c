import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Orders } from "./program.ts";

const script = fileURLToPath(new URL("worker.ts", import.meta.url));

/** What a worker is asked, and what it says. */
export type Order = "clock" | "stop in a transaction" | "stop before sending" | "go on";
export type Word = { readonly say: "ready" } | { readonly say: "clock"; readonly wall: number };

export interface ReplicaOptions {
  readonly orders: Omit<Orders, "worker">;
  readonly folder: string;
  /** On top of ours, for example what is preloaded. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A process that is stopped does not notice that we are gone. */
const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** One place in the deployment: a process that is started again whenever it was killed. */
export class Replica {
  readonly slot: number;
  readonly #options: ReplicaOptions;
  #process: ChildProcess | undefined;
  #incarnation = 0;
  #up = false;
  #paused = false;
  #killed: ChildProcess | undefined;
  #clock: ((wall: number) => void) | undefined;
  #gone: Promise<void> = Promise.resolve();
  /** It ended though nobody had killed it. */
  readonly collapses: string[] = [];

  constructor(slot: number, options: ReplicaOptions) {
    this.slot = slot;
    this.#options = options;
  }

  /** Its name in leases, in terms and in the world's ledger: new with every start. */
  get label(): string {
    return `replica-${this.slot}.${this.#incarnation}`;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  get log(): string {
    return join(this.#options.folder, `${this.label}.log`);
  }

  /** Started, ready, and neither stopped nor killed. */
  get up(): boolean {
    return this.#up && !this.#paused;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Resolves once it serves, or has ended. */
  async start(): Promise<void> {
    this.#incarnation++;
    const { label, log } = this;
    const { orders, env } = this.#options;
    const child = fork(script, [JSON.stringify({ ...orders, worker: label, log })], {
      env: { ...process.env, ...env, TAPE_REPLICA_ID: label },
      execArgv: [], // not the test runner's
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process = child;
    children.add(child);
    this.#gone = new Promise((resolve) =>
      child.once("exit", () => {
        children.delete(child);
        resolve();
      }),
    );
    const ready = await new Promise<boolean>((resolve) => {
      child.on("message", (word: Word) => {
        if (word.say === "ready") resolve(true);
        else this.#clock?.(word.wall);
      });
      child.once("exit", (code, signal) => {
        resolve(false);
        this.#up &&= this.#process !== child;
        if (this.#killed !== child)
          this.collapses.push(`${label} ended though nobody had killed it (${signal ?? code})`);
      });
    });
    if (this.#process === child && this.#killed !== child) this.#up = ready;
  }

  kill(): void {
    this.#up = false;
    this.#paused = false;
    this.#killed = this.#process;
    this.#process?.kill("SIGKILL"); // reaches a stopped process, too
  }

  /** Resolves once its process has ended. */
  gone(): Promise<void> {
    return this.#gone;
  }

  /** SIGSTOP: it does not know. */
  pause(): void {
    this.#paused = true;
    this.#process?.kill("SIGSTOP");
  }

  wake(): void {
    this.#paused = false;
    this.#process?.kill("SIGCONT");
  }

  tell(order: Order): void {
    if (this.#process?.connected === true) this.#process.send(order);
  }

  /** It will stop by itself, or has: from now on it counts as stopped. */
  expectStop(): void {
    this.#paused = true;
  }

  /** Its process is stopped, whoever did it. */
  get stands(): boolean {
    try {
      return / T /.test(readFileSync(`/proc/${this.pid}/stat`, "utf8"));
    } catch {
      return false; // it is gone
    }
  }

  /** What its wall clock says; undefined: it does not answer. */
  clock(withinMs: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), withinMs);
      this.#clock = (wall) => {
        clearTimeout(timer);
        resolve(wall);
      };
      this.tell("clock");
    });
  }
}

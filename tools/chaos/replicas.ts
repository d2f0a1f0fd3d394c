import { type ChildProcess, fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { WorkerOptions } from "./program.ts";

const script = fileURLToPath(new URL("worker.ts", import.meta.url));

/** A command to a worker process. */
export type WorkerCommand = "clock" | "stop in a transaction" | "stop before sending" | "continue";
/** A message from a worker process. */
export type WorkerMessage =
  | { readonly type: "ready"; readonly url?: string }
  | { readonly type: "clock"; readonly wall: number }
  | { readonly type: "note"; readonly note: unknown };

export interface ReplicaOptions {
  /** On its command line, with `worker` and `log` added. */
  readonly orders: Omit<WorkerOptions, "worker"> | object;
  readonly folder: string;
  /** The program, worker.ts unless given, and what its processes are called. */
  readonly program?: { readonly file: string; readonly name: string };
  /** Receives the notes of the process. */
  readonly note?: (note: unknown) => void;
  /** Added to the environment of this process, for example a preload. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A stopped process does not notice that its parent has ended, so the parent kills it. */
const children = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of children) child.kill("SIGKILL");
});

/** One slot of the deployment: a process that is restarted after every kill. */
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
  #url: string | undefined;
  /** Unexpected ends of the process. */
  readonly collapses: string[] = [];

  constructor(slot: number, options: ReplicaOptions) {
    this.slot = slot;
    this.#options = options;
  }

  /** Its name in leases, terms and the world's ledger; every start gives a new one. */
  get label(): string {
    return `${this.#options.program?.name ?? "replica"}-${this.slot}.${this.#incarnation}`;
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  /** Where it listens, if it does. */
  get url(): string | undefined {
    return this.#url;
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

  /** Resolves once it is ready, or has ended. */
  async start(): Promise<void> {
    this.#incarnation++;
    const { label, log } = this;
    const { orders, env, program } = this.#options;
    const child = fork(program?.file ?? script, [JSON.stringify({ ...orders, worker: label, log })], {
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
      child.on("message", (message: WorkerMessage) => {
        if (message.type === "clock") this.#clock?.(message.wall);
        else if (message.type === "note") this.#options.note?.(message.note);
        else {
          this.#url = message.url;
          resolve(true);
        }
      });
      child.once("exit", (code, signal) => {
        resolve(false);
        this.#up &&= this.#process !== child;
        if (this.#killed !== child) this.collapses.push(`${label} ended without being killed (${signal ?? code})`);
      });
    });
    if (this.#process === child && this.#killed !== child) this.#up = ready;
  }

  kill(): void {
    this.#up = false;
    this.#paused = false;
    this.#killed = this.#process;
    this.#process?.kill("SIGKILL"); // also ends a stopped process
  }

  /** The process ends on its own: that is no collapse. */
  expectDeath(): void {
    this.#killed = this.#process;
  }

  /** Resolves once its process has ended. */
  gone(): Promise<void> {
    return this.#gone;
  }

  /** SIGSTOP: the process does not notice. */
  pause(): void {
    this.#paused = true;
    this.#process?.kill("SIGSTOP");
  }

  wake(): void {
    this.#paused = false;
    this.#process?.kill("SIGCONT");
  }

  send(command: WorkerCommand | object): void {
    if (this.#process?.connected === true) this.#process.send(command);
  }

  /** The process stops on its own, or already has: from now on it counts as stopped. */
  expectStop(): void {
    this.#paused = true;
  }

  /** The operating system reports the process as stopped, whatever stopped it. */
  get stopped(): boolean {
    try {
      return / T /.test(readFileSync(`/proc/${this.pid}/stat`, "utf8"));
    } catch {
      return false; // it has ended
    }
  }

  /** Time of its wall clock; undefined: it does not respond. */
  clock(withinMs: number): Promise<number | undefined> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(undefined), withinMs);
      this.#clock = (wall) => {
        clearTimeout(timer);
        resolve(wall);
      };
      this.send("clock");
    });
  }
}

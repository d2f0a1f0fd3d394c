import { type ChildProcess, fork } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Orders } from "./program.ts";

const script = fileURLToPath(new URL("worker.ts", import.meta.url));

/** One place in the deployment: a process that is started again whenever it was killed. */
export class Replica {
  readonly #slot: number;
  readonly #orders: Omit<Orders, "worker">;
  readonly #folder: string;
  #process: ChildProcess | undefined;
  #incarnation = 0;
  #ready: Promise<boolean> = Promise.resolve(false);
  #up = false;
  #paused = false;
  #killed: ChildProcess | undefined;
  /** It ended though nobody had killed it. */
  readonly collapses: string[] = [];

  constructor(slot: number, orders: Omit<Orders, "worker">, folder: string) {
    this.#slot = slot;
    this.#orders = orders;
    this.#folder = folder;
  }

  /** Its name in leases, in terms and in the world's ledger: new with every start. */
  get label(): string {
    return `replica-${this.#slot}.${this.#incarnation}`;
  }

  /** Started, ready, and neither stopped nor killed. */
  get up(): boolean {
    return this.#up && !this.#paused;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Resolves once it serves. */
  async start(): Promise<void> {
    this.#incarnation++;
    const { label } = this;
    const log = join(this.#folder, `${label}.log`);
    const child = fork(script, [JSON.stringify({ ...this.#orders, worker: label, log })], {
      env: { ...process.env, TAPE_REPLICA_ID: label },
      execArgv: [], // not the test runner's
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#process = child;
    this.#ready = new Promise((resolve) => {
      child.once("message", () => resolve(true));
      child.once("exit", (code, signal) => {
        resolve(false);
        this.#up &&= this.#process !== child;
        if (this.#killed !== child)
          this.collapses.push(`${label} ended though nobody had killed it (${signal ?? code})`);
      });
    });
    this.#up = await this.#ready;
  }

  kill(): void {
    this.#up = false;
    this.#paused = false;
    this.#killed = this.#process;
    this.#process?.kill("SIGKILL"); // reaches a stopped process, too
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
}

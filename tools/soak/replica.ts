import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { SelfReport, WorkerOrders } from "./worker.ts";

/** A worker process of the soak. */
export class Replica {
  readonly #child: ChildProcess;

  static async start(orders: WorkerOrders): Promise<Replica> {
    const replica = new Replica(orders);
    await replica.#said();
    return replica;
  }

  private constructor(orders: WorkerOrders) {
    const file = join(import.meta.dirname, "worker.ts");
    this.#child = fork(file, [JSON.stringify(orders)], { execArgv: ["--expose-gc"] });
  }

  async report(): Promise<SelfReport> {
    const said = this.#said();
    this.#child.send("report");
    return said as Promise<SelfReport>;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.send("stop");
    await exited;
  }

  async #said(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const gone = (code: number | null, signal: string | null): void =>
        reject(new Error(`a replica ended with ${signal ?? code}`));
      this.#child.once("exit", gone);
      this.#child.once("message", (message) => {
        this.#child.off("exit", gone);
        resolve(message);
      });
    });
  }
}

/** A replica that is killed every so often and comes back, until it is told to end. */
export class Restless {
  deaths = 0;
  readonly #life: Promise<void>;
  #ended = false;
  #wake = (): void => {};

  constructor(orders: WorkerOrders, everyMs: number) {
    this.#life = this.#live(orders, everyMs);
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#wake();
    await this.#life;
  }

  async #live(orders: WorkerOrders, everyMs: number): Promise<void> {
    while (!this.#ended) {
      const replica = await Replica.start(orders);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, everyMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
        if (this.#ended) this.#wake();
      });
      await replica.kill();
      this.deaths++;
    }
  }
}

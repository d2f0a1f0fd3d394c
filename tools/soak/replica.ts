import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { SelfReport, WorkerOptions } from "./worker.ts";

/** A worker process of the soak. */
export class Replica {
  readonly #child: ChildProcess;

  static async start(options: WorkerOptions): Promise<Replica> {
    const replica = new Replica(options);
    await replica.#nextMessage();
    return replica;
  }

  private constructor(options: WorkerOptions) {
    const file = join(import.meta.dirname, "worker.ts");
    this.#child = fork(file, [JSON.stringify(options)], { execArgv: ["--expose-gc"] });
  }

  async report(): Promise<SelfReport> {
    const message = this.#nextMessage();
    this.#child.send("report");
    return message as Promise<SelfReport>;
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

  async #nextMessage(): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const onExit = (code: number | null, signal: string | null): void =>
        reject(new Error(`a replica ended with ${signal ?? code}`));
      this.#child.once("exit", onExit);
      this.#child.once("message", (message) => {
        this.#child.off("exit", onExit);
        resolve(message);
      });
    });
  }
}

/** A replica that is killed and restarted at intervals, until `end` is called. */
export class ChurningReplicas {
  kills = 0;
  readonly #running: Promise<void>;
  #ended = false;
  #wake = (): void => {};

  constructor(options: WorkerOptions, everyMs: number) {
    this.#running = this.#run(options, everyMs);
  }

  async end(): Promise<void> {
    this.#ended = true;
    this.#wake();
    await this.#running;
  }

  async #run(options: WorkerOptions, everyMs: number): Promise<void> {
    while (!this.#ended) {
      const replica = await Replica.start(options);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, everyMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
        if (this.#ended) this.#wake();
      });
      await replica.kill();
      this.kills++;
    }
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { WorkerSettings } from "./system.ts";
import type { Answer, Ask } from "./worker.ts";

/** A worker process that can be asked, closed and killed. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #answers: Answer[] = [];
  #received = (): void => {};
  #ended: string | undefined;

  /** `prefix` is a command that executes the rest, for a namespace of its own. */
  static async start(settings: WorkerSettings, prefix: readonly string[] = []): Promise<WorkerProcess> {
    const worker = new WorkerProcess(settings, prefix);
    await worker.#onNote(60_000);
    return worker;
  }

  private constructor(settings: WorkerSettings, prefix: readonly string[]) {
    const command = [...prefix, process.execPath, join(import.meta.dirname, "worker.ts"), JSON.stringify(settings)];
    this.#child = spawn(command[0]!, command.slice(1), {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
      env: { ...process.env, NODE_NO_WARNINGS: "1" }, // deprecations inside of others' packages
    });
    this.#child.on("message", (answer: Answer) => {
      this.#answers.push(answer);
      this.#received();
    });
    this.#child.once("exit", (code, signal) => {
      this.#ended = `the worker of ${settings.system} ended with ${signal ?? code}`;
      this.#received();
    });
  }

  async ask(ask: Ask, patienceMs = 120_000): Promise<Readonly<Record<string, number>>> {
    this.#child.send(ask);
    return this.#onNote(patienceMs);
  }

  async close(): Promise<void> {
    const exited = this.#ended === undefined ? once(this.#child, "exit") : undefined;
    this.#child.send({ ask: "close" } satisfies Ask, () => {});
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), 10_000);
    await exited;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    if (this.#ended !== undefined) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async #onNote(patienceMs: number): Promise<Readonly<Record<string, number>>> {
    const until = performance.now() + patienceMs;
    while (this.#answers.length === 0) {
      if (this.#ended !== undefined) throw new Error(this.#ended);
      if (performance.now() > until) throw new Error(`no answer within ${patienceMs} ms`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 200);
        this.#received = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    const { figures, error } = this.#answers.shift()!;
    if (error !== undefined) throw new Error(error);
    return figures ?? {};
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import type { WorkerSettings } from "./system.ts";
import type { Answer, Ask } from "./worker.ts";

type AnySettings = { readonly system: string };

interface Launch {
  /** A command that executes the rest, for a namespace of its own. */
  readonly prefix?: readonly string[];
  /** The program, beside this file. */
  readonly program?: string;
}

/** A worker process that can be asked, closed and killed. */
export class WorkerProcess<A extends { readonly ask: string } = Ask> {
  readonly #child: ChildProcess;
  readonly #answers: Answer[] = [];
  #received = (): void => {};
  #ended: string | undefined;

  static async start(settings: WorkerSettings, prefix: readonly string[] = []): Promise<WorkerProcess> {
    return WorkerProcess.run(settings, { prefix });
  }

  /** Any program that gets its settings as one argument and answers as worker.ts does. */
  static async run<A extends { readonly ask: string }>(
    settings: AnySettings,
    started: Launch,
  ): Promise<WorkerProcess<A>> {
    const worker = new WorkerProcess<A>(settings, started);
    await worker.#onNote(60_000);
    return worker;
  }

  private constructor(settings: AnySettings, { prefix = [], program = "worker.ts" }: Launch) {
    const command = [...prefix, process.execPath, join(import.meta.dirname, program), JSON.stringify(settings)];
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

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  async ask(ask: A, patienceMs = 120_000): Promise<Readonly<Record<string, number>>> {
    this.#child.send(ask);
    return this.#onNote(patienceMs);
  }

  async close(): Promise<void> {
    const exited = this.#ended === undefined ? once(this.#child, "exit") : undefined;
    this.#child.send({ ask: "close" }, () => {});
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

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestContext } from "vitest";
import type { Command, Reply } from "./messages.ts";

/** A worker process that exchanges messages with the test. It is killed when the test ends. */
export class Child {
  readonly #process: ChildProcess;
  readonly #replies: Reply[] = [];
  #notify = () => {};
  #gone = false;

  constructor(label: string, args: readonly string[], test: TestContext, script = "worker.ts") {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#process = fork(path, args, {
      env: { ...process.env, TAPE_REPLICA_ID: label },
      execArgv: [], // not the test runner's
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    test.onTestFinished(() => this.kill());
    this.#process.on("message", (reply: Reply) => {
      this.#replies.push(reply);
      this.#notify();
    });
    this.#process.on("exit", () => {
      this.#gone = true;
      this.#notify();
    });
  }

  static async start(label: string, url: string, test: TestContext): Promise<Child> {
    const child = new Child(label, [url], test);
    await child.receive();
    return child;
  }

  async receive(): Promise<Reply> {
    for (;;) {
      const reply = this.#replies.shift();
      if (reply !== undefined) return reply;
      if (this.#gone) throw new Error("the worker ended before it replied");
      await new Promise<void>((resolve) => {
        this.#notify = resolve;
      });
    }
  }

  send(command: Command): void {
    this.#process.send(command);
  }

  request(command: Command): Promise<Reply> {
    this.send(command);
    return this.receive();
  }

  /** SIGSTOP: the process does not notice. */
  pause(): void {
    this.#process.kill("SIGSTOP");
  }

  wake(): void {
    this.#process.kill("SIGCONT");
  }

  /** SIGKILL also ends a stopped process. */
  kill(): void {
    if (!this.#gone) this.#process.kill("SIGKILL");
  }
}

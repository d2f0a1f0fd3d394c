import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestContext } from "vitest";
import type { Answer, Question } from "./words.ts";

/** A worker process and the conversation with it. It dies with the test, whatever it is doing then. */
export class Actor {
  readonly #process: ChildProcess;
  readonly #answers: Answer[] = [];
  #heard = () => {};
  #gone = false;

  constructor(label: string, args: readonly string[], test: TestContext, script = "worker.ts") {
    const path = fileURLToPath(new URL(script, import.meta.url));
    this.#process = fork(path, args, {
      env: { ...process.env, TAPE_REPLICA_ID: label },
      execArgv: [], // not the test runner's
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    test.onTestFinished(() => this.kill());
    this.#process.on("message", (answer: Answer) => {
      this.#answers.push(answer);
      this.#heard();
    });
    this.#process.on("exit", () => {
      this.#gone = true;
      this.#heard();
    });
  }

  static async start(label: string, url: string, test: TestContext): Promise<Actor> {
    const actor = new Actor(label, [url], test);
    await actor.hear();
    return actor;
  }

  async hear(): Promise<Answer> {
    for (;;) {
      const answer = this.#answers.shift();
      if (answer !== undefined) return answer;
      if (this.#gone) throw new Error("the worker ended before it answered");
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  say(question: Question): void {
    this.#process.send(question);
  }

  ask(question: Question): Promise<Answer> {
    this.say(question);
    return this.hear();
  }

  /** SIGSTOP: it does not know. */
  pause(): void {
    this.#process.kill("SIGSTOP");
  }

  wake(): void {
    this.#process.kill("SIGCONT");
  }

  /** SIGKILL reaches a stopped process, too. */
  kill(): void {
    if (!this.#gone) this.#process.kill("SIGKILL");
  }
}

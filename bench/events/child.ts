import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const running = new Set<ChildProcess>();
process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

/** A program of this folder in a process of its own, which says things and is asked for things. */
export class Child<Message extends { readonly say: string }> {
  readonly #process: ChildProcess;
  readonly #unread: Message[] = [];
  #received = (): void => {};

  /** `listener` returns true for messages that it has taken; `receive` gets the others. */
  constructor(program: string, args: readonly string[], listener?: (message: Message) => boolean) {
    const file = fileURLToPath(new URL(program, import.meta.url));
    this.#process = fork(file, [...args], { execArgv: [], stdio: ["ignore", "inherit", "inherit", "ipc"] });
    running.add(this.#process);
    this.#process.once("exit", () => {
      running.delete(this.#process);
      this.#received();
    });
    this.#process.on("message", (message: Message) => {
      if (listener?.(message) === true) return;
      this.#unread.push(message);
      this.#received();
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** The next message of this kind. */
  async receive<S extends Message["say"]>(what: S): Promise<Extract<Message, { readonly say: S }>> {
    for (;;) {
      const k = this.#unread.findIndex(({ say }) => say === what);
      const [found] = k < 0 ? [] : this.#unread.splice(k, 1);
      if (found !== undefined) return found as Extract<Message, { readonly say: S }>;
      if (this.#hasEnded) throw new Error(`a process ended before its message "${what}"`);
      await new Promise<void>((resolve) => {
        this.#received = resolve;
      });
    }
  }

  ask(message: object): void {
    this.#process.send(message);
  }

  /** SIGKILL, and waits until the process is gone. */
  async kill(): Promise<void> {
    if (this.#hasEnded) return;
    const exit = once(this.#process, "exit");
    this.#process.kill("SIGKILL");
    await exit;
  }

  get #hasEnded(): boolean {
    return this.#process.exitCode !== null || this.#process.signalCode !== null;
  }
}

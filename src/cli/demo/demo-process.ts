import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A worker process of a demo, and the conversation with it. */
export class DemoProcess<Said extends object, Heard> {
  readonly label: string;
  readonly process: ChildProcess;
  readonly #heard: Heard[] = [];
  #wake = () => {};
  #gone = false;

  /** `program`: the module that the process runs. */
  constructor(label: string, program: URL, args: readonly string[]) {
    this.label = label;
    this.process = fork(fileURLToPath(program), args, {
      env: { ...process.env, TAPE_REPLICA_ID: label },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.process.on("message", (message: Heard) => {
      this.#heard.push(message);
      this.#wake();
    });
    this.process.on("exit", () => {
      this.#gone = true;
      this.#wake();
    });
  }

  send(message: Said): void {
    this.process.send(message);
  }

  async receive(): Promise<Heard> {
    for (;;) {
      const next = this.#heard.shift();
      if (next !== undefined) return next;
      if (this.#gone) throw new Error(`${this.label} ended before it answered`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async request(message: Said): Promise<Heard> {
    this.send(message);
    return this.receive();
  }

  /** Asks it to go, and waits until it has gone. */
  async quit(message: Said): Promise<void> {
    if (this.#gone) return;
    const exit = once(this.process, "exit");
    this.send(message);
    await exit;
  }

  /** SIGKILL: it gets no chance to say or to save anything. */
  async kill(): Promise<void> {
    if (this.#gone) return;
    const exit = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await exit;
  }
}

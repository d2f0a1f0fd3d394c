import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

/** A worker process of a demo, and the messages to and from it. */
export class DemoProcess<Sent extends object, Received> {
  readonly label: string;
  readonly process: ChildProcess;
  readonly #received: Received[] = [];
  #wake = () => {};
  #exited = false;

  /** `program` is the module that the process runs. */
  constructor(label: string, program: URL, args: readonly string[]) {
    this.label = label;
    this.process = fork(fileURLToPath(program), args, {
      env: { ...process.env, TAPE_REPLICA_ID: label },
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.process.on("message", (message: Received) => {
      this.#received.push(message);
      this.#wake();
    });
    this.process.on("exit", () => {
      this.#exited = true;
      this.#wake();
    });
  }

  send(message: Sent): void {
    this.process.send(message);
  }

  async receive(): Promise<Received> {
    for (;;) {
      const next = this.#received.shift();
      if (next !== undefined) return next;
      if (this.#exited) throw new Error(`${this.label} ended before it sent a message`);
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }

  async request(message: Sent): Promise<Received> {
    this.send(message);
    return this.receive();
  }

  /** Sends the message that ends the process, and waits for its exit. */
  async quit(message: Sent): Promise<void> {
    if (this.#exited) return;
    const exit = once(this.process, "exit");
    this.send(message);
    await exit;
  }

  /** SIGKILL: the process cannot send or save anything more. */
  async kill(): Promise<void> {
    if (this.#exited) return;
    const exit = once(this.process, "exit");
    this.process.kill("SIGKILL");
    await exit;
  }
}

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";

/** Longer than a lease, an installation and a settle time together, on a busy machine. */
const patienceMs = 240_000;

/** The shell reads its commands from its input, so a program among them must not. */
const apart = (commands: string): string => `{\n${commands}\n} < /dev/null`;

/** A shell that stays open, as a reader's does: variables and background programs last until it is closed. */
export class Terminal {
  readonly #shell: ChildProcess;
  #output = "";
  #exited = false;

  constructor(folder: string, env: Readonly<Record<string, string>>) {
    // Its own process group, so that `close` ends the programs that it started, and nothing else.
    this.#shell = spawn("bash", ["--noprofile", "--norc", "-eo", "pipefail"], { cwd: folder, env, detached: true });
    for (const stream of [this.#shell.stdout!, this.#shell.stderr!])
      stream.on("data", (data: Buffer) => {
        this.#output += data.toString();
      });
    this.#shell.once("exit", () => {
      this.#exited = true;
    });
    this.#shell.stdin!.on("error", () => {}); // the shell has exited: `#wait` reports it
    this.#shell.stdin!.write("exec 2>&1\n"); // one pipe keeps the order of lines
  }

  /** Runs commands to their end. Returns what they print; throws if one fails. */
  async run(commands: string): Promise<string> {
    const from = this.#output.length;
    const mark = randomUUID();
    this.#shell.stdin!.write(`${apart(commands)}\nprintf '%s\\n' ${mark}\n`);
    await this.#wait(() => this.#output.includes(mark), from, "a command failed");
    const text = this.#output.slice(from);
    return text.slice(0, text.indexOf(mark)) + text.slice(text.indexOf(mark) + mark.length + 1);
  }

  /** Types commands that may keep running, and waits until the terminal shows what the page says. */
  async type(commands: string, isShown: (output: string) => boolean): Promise<void> {
    const from = this.#output.length;
    this.#shell.stdin!.write(`${apart(commands)}\n`);
    await this.#wait(() => isShown(this.#output.slice(from)), from, "the program ended");
  }

  /** Everything it has shown. */
  get output(): string {
    return this.#output;
  }

  async #wait(isDone: () => boolean, from: number, failure: string): Promise<void> {
    const until = performance.now() + patienceMs;
    while (!isDone()) {
      if (this.#exited) {
        await delay(50); // its last output
        if (isDone()) return;
        throw new Error(`${failure}; the terminal shows:\n${this.#output.slice(from)}`);
      }
      if (performance.now() > until)
        throw new Error(`nothing after ${patienceMs / 1_000} s; the terminal shows:\n${this.#output.slice(from)}`);
      await delay(20);
    }
  }

  close(): void {
    try {
      process.kill(-this.#shell.pid!, "SIGKILL");
    } catch {
      // Everything in it has ended.
    }
  }
}

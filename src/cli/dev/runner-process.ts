import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../base/clock.ts";
import { logLineOf, printLogLine } from "./log-line.ts";

export interface RunnerProcessOptions {
  /** Arguments of tape-reactors. */
  readonly args: readonly string[];
  /** Added to this process's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** How long a stopping process may drain before it is killed. */
  readonly graceMs: number;
  /** Prints the output of the process, and its starts and exits. */
  readonly print: (line: string) => void;
}

const firstRestartDelayMs = 250;
const maxRestartDelayMs = 10_000;
/** A process that ran this long has started properly, so the next restart delay is short again. */
const stableAfterMs = 10_000;

/**
 * Keeps the user's runner running in a child process:
 *
 *   starting → running            it has loaded, and its reactors run
 *   starting → failed             it did not load; only a changed file can help
 *   running  → delayed → starting it died; the delays double, from 0.25 s to 10 s
 *   any      → starting           a file has changed: the old process drains first
 *   any      → stopped            final
 */
export class RunnerProcess {
  readonly #options: RunnerProcessOptions;
  #child: ChildProcess | undefined;
  #delay = new AbortController();
  #changed = false;
  #stopped = false;
  #life: Promise<void> | undefined;

  constructor(options: RunnerProcessOptions) {
    this.#options = options;
  }

  start(): void {
    this.#life ??= this.#live();
  }

  /** Drains the current process and starts one with the current files. */
  reload(): void {
    this.#changed = true;
    this.#end();
  }

  /** May be called more than once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#end();
    await this.#life;
  }

  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #end(): void {
    this.#delay.abort();
    const child = this.#child;
    if (child === undefined || child.killed) return;
    child.kill("SIGTERM");
    const cancel = this.#options.clock.after(this.#options.graceMs, () => void child.kill("SIGKILL"));
    child.once("exit", cancel);
  }

  async #live(): Promise<void> {
    const { clock, print } = this.#options;
    let restartDelayMs = firstRestartDelayMs;
    while (!this.#stopped) {
      this.#changed = false;
      this.#delay = new AbortController();
      const startedAt = clock.mono();
      const { code, signal, started } = await this.#run();
      if (this.#stopped) return;
      if (this.#changed) {
        restartDelayMs = firstRestartDelayMs;
        continue;
      }
      if (!started && signal === null) {
        print("the runner did not start; waiting for a file change");
        restartDelayMs = firstRestartDelayMs;
        await clock.sleep(forever, this.#delay.signal);
        continue;
      }
      if (clock.mono() - startedAt > stableAfterMs) restartDelayMs = firstRestartDelayMs;
      print(`the runner died (${signal ?? `exit code ${code}`}); restarting in ${restartDelayMs / 1_000} s`);
      await clock.sleep(restartDelayMs, this.#delay.signal);
      restartDelayMs = Math.min(restartDelayMs * 2, maxRestartDelayMs);
    }
  }

  async #run(): Promise<{ code: number | null; signal: string | null; started: boolean }> {
    const { args, print } = this.#options;
    const script = new URL("runner-child.ts", import.meta.url);
    // Its own process group, so that a terminal's Ctrl-C reaches only this process, which drains the child.
    const child = fork(fileURLToPath(script), args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
      env: { ...process.env, ...this.#options.env },
    });
    this.#child = child;
    let started = false;
    const onLine = (text: string): void => {
      const line = logLineOf(text);
      if (line?.event === "reactors.started") {
        started = true;
        print(`the runner is up: ${(line.fields.reactors as readonly string[]).join(", ")}`);
      } else if (line === undefined) print(text);
      else if (!line.event.startsWith("reactors.")) print(printLogLine(line)); // starts and exits have their own lines
    };
    const streams = [child.stdout!, child.stderr!].map((stream) => {
      const lines = createInterface({ input: stream }).on("line", onLine);
      return once(lines, "close");
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    await Promise.all(streams);
    this.#child = undefined;
    return { code, signal, started };
  }
}

/** The longest timeout of a Node timer; a changed file or a stop ends it. */
const forever = 2 ** 31 - 1;

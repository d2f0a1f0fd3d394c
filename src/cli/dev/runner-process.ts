import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Clock } from "../../base/clock.ts";
import { logLineOf, printLogLine } from "./log-line.ts";

export interface RunnerProcessOptions {
  /** As tape-reactors takes them. */
  readonly args: readonly string[];
  /** On top of our own environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly clock: Clock;
  /** How long a stopping process may drain before it is killed. */
  readonly graceMs: number;
  /** What the process says, and what becomes of it. */
  readonly tell: (line: string) => void;
}

const firstRestMs = 250;
const maxRestartDelayMs = 10_000;
/** A process that lived this long has not died of its start: the next rest is a short one again. */
const soundMs = 10_000;

/**
 * The user's runner in a process of its own, which is always there while it can be:
 *
 *   starting → running            it has loaded, and its reactors run
 *   starting → waiting            it did not load; only a change can help
 *   running  → resting → starting it died; the rests double, from 0.25 s to 10 s
 *   any      → starting           a file has changed: the old one drains first
 *   any      → stopped            for good
 */
export class RunnerProcess {
  readonly #options: RunnerProcessOptions;
  #child: ChildProcess | undefined;
  #rest = new AbortController();
  #changed = false;
  #stopped = false;
  #life: Promise<void> | undefined;

  constructor(options: RunnerProcessOptions) {
    this.#options = options;
  }

  start(): void {
    this.#life ??= this.#live();
  }

  /** Drains the process there is, and starts one with the files as they are now. */
  reload(): void {
    this.#changed = true;
    this.#end();
  }

  /** Twice is as good as once. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#end();
    await this.#life;
  }

  kill(): void {
    this.#child?.kill("SIGKILL");
  }

  #end(): void {
    this.#rest.abort();
    const child = this.#child;
    if (child === undefined || child.killed) return;
    child.kill("SIGTERM");
    const cancel = this.#options.clock.after(this.#options.graceMs, () => void child.kill("SIGKILL"));
    child.once("exit", cancel);
  }

  async #live(): Promise<void> {
    const { clock, tell } = this.#options;
    let restMs = firstRestMs;
    while (!this.#stopped) {
      this.#changed = false;
      this.#rest = new AbortController();
      const begun = clock.mono();
      const { code, signal, started } = await this.#run();
      if (this.#stopped) return;
      if (this.#changed) {
        restMs = firstRestMs;
        continue;
      }
      if (!started && signal === null) {
        tell("the runner did not start; it waits for a change of its files");
        restMs = firstRestMs;
        await clock.sleep(forever, this.#rest.signal);
        continue;
      }
      if (clock.mono() - begun > soundMs) restMs = firstRestMs;
      tell(`the runner died (${signal ?? `exit code ${code}`}); the next one starts in ${restMs / 1_000} s`);
      await clock.sleep(restMs, this.#rest.signal);
      restMs = Math.min(restMs * 2, maxRestartDelayMs);
    }
  }

  async #run(): Promise<{ code: number | null; signal: string | null; started: boolean }> {
    const { args, tell } = this.#options;
    const script = new URL("runner-child.ts", import.meta.url);
    // A group of its own: a terminal's Ctrl-C goes to us alone, and we let it drain.
    const child = fork(fileURLToPath(script), args, {
      stdio: ["ignore", "pipe", "pipe", "ipc"],
      detached: true,
      env: { ...process.env, ...this.#options.env },
    });
    this.#child = child;
    let started = false;
    const hear = (text: string): void => {
      const line = logLineOf(text);
      if (line?.event === "reactors.started") {
        started = true;
        tell(`the runner is up: ${(line.fields.reactors as readonly string[]).join(", ")}`);
      } else if (line === undefined) tell(text);
      else if (!line.event.startsWith("reactors.")) tell(printLogLine(line)); // its coming and going are told in words
    };
    const streams = [child.stdout!, child.stderr!].map((stream) => {
      const lines = createInterface({ input: stream }).on("line", hear);
      return once(lines, "close");
    });
    const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
    await Promise.all(streams);
    this.#child = undefined;
    return { code, signal, started };
  }
}

/** The longest that a timer of Node can wait; a change or a stop ends it. */
const forever = 2 ** 31 - 1;

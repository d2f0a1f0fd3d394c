import { type ChildProcess, fork, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProcessOrders } from "./process.ts";
import type { Build } from "./program.ts";

const script = fileURLToPath(new URL("process.ts", import.meta.url));
const program = fileURLToPath(new URL("../../../bin/durable-tape.js", import.meta.url));

/** How a process ended: its exit code, or the signal. */
export type End = number | NodeJS.Signals;

const endOf = (child: ChildProcess): Promise<End> =>
  new Promise((resolve) => child.once("exit", (code, signal) => resolve(code ?? signal!)));

/** One process of a build. It is named after the build, so that every term shows which build had it. */
export class BuildProcess {
  readonly label: string;
  readonly build: Build;
  readonly end: Promise<End>;
  readonly ready: Promise<void>;
  readonly #child: ChildProcess;
  readonly #log: string;
  #gone = false;

  constructor(build: Build, slot: number, orders: Omit<ProcessOrders, "build" | "log">, folder: string) {
    this.build = build;
    this.label = `${build}-${slot}`;
    this.#log = join(folder, `${this.label}.log`);
    const child = fork(script, [JSON.stringify({ ...orders, build, log: this.#log } satisfies ProcessOrders)], {
      env: { ...process.env, TAPE_REPLICA_ID: this.label },
      execArgv: [],
      stdio: ["ignore", "inherit", "inherit", "ipc"],
    });
    this.#child = child;
    this.end = endOf(child);
    void this.end.then(() => {
      this.#gone = true;
    });
    this.ready = Promise.race([
      new Promise<void>((resolve) => child.once("message", () => resolve())),
      this.end.then((end) => Promise.reject(new Error(`${this.label} ended with ${end} before it was ready`))),
    ]);
    this.ready.catch(() => {}); // the caller of `ready` gets it
  }

  kill(signal: NodeJS.Signals): void {
    if (!this.#gone) this.#child.kill(signal);
  }

  /** Lines of its log that name this code. */
  logged(code: string): string[] {
    try {
      return readFileSync(this.#log, "utf8")
        .split("\n")
        .filter((line) => line.includes(code));
    } catch {
      return []; // it has logged nothing
    }
  }
}

/** The pre-stop hook of a process, as a container runs it: waits until the build is drained. */
export function preStopHook(url: string, build: Build): { readonly end: Promise<End>; kill(): void } {
  const args = [program, "builds", "drained", build, "--wait", "--store", url];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "inherit"] });
  return { end: endOf(child), kill: () => void child.kill("SIGKILL") };
}

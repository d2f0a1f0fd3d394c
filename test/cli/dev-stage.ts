import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { plainEnv } from "./plain-env.ts";

const program = resolve(import.meta.dirname, "../../bin/durable-tape.js");

/** A `durable-tape dev` process and its output so far. */
export class Dev {
  readonly process: ChildProcess;
  #raw = "";

  constructor(child: ChildProcess) {
    this.process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on("data", (data: Buffer) => {
        this.#raw += data.toString();
      });
    }
    onTestFinished(async () => {
      child.kill("SIGTERM"); // it ends its children
      await this.ended();
    });
  }

  /** Without a terminal. */
  static plain(args: readonly string[], cwd: string): Dev {
    return new Dev(spawn(process.execPath, [program, "dev", ...args], { cwd, env: plainEnv }));
  }

  /** In a pseudo-terminal of `script`, which every Debian has. */
  static inTerminal(args: readonly string[], cwd: string): Dev {
    const argv = [process.execPath, program, "dev", ...args].map((arg) => `'${arg.replaceAll("'", "'\\''")}'`);
    const command = `stty cols 100 rows 40; exec ${argv.join(" ")}`;
    return new Dev(spawn("script", ["-qfec", command, "/dev/null"], { cwd, env: { ...plainEnv, TERM: "xterm" } }));
  }

  /** The output as plain text, from a position that {@link mark} returned. */
  text(from = 0): string {
    return stripVTControlCharacters(this.#raw.slice(from)).replaceAll("\r", "");
  }

  /** The output with its control sequences. */
  get raw(): string {
    return this.#raw;
  }

  mark(): number {
    return this.#raw.length;
  }

  press(key: string): void {
    this.process.stdin?.write(key);
  }

  /** Waits until the output matches. */
  async says(pattern: RegExp, from = 0): Promise<RegExpExecArray> {
    for (;;) {
      const found = pattern.exec(this.text(from));
      if (found !== null) return found;
      const { exitCode, signalCode } = this.process;
      if (exitCode !== null || signalCode !== null) {
        throw new Error(
          `dev ended (${exitCode ?? signalCode}) and never printed ${pattern}: ${this.text().slice(-3_000)}`,
        );
      }
      await sleep(20);
    }
  }

  /** The exit code, once the process has ended and its output has been read. */
  async ended(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "close");
    return this.process.exitCode;
  }
}

/** Processes of this machine whose command line contains the text. */
export function processesWith(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(join("/proc", name, "cmdline"), "utf8").includes(text);
      } catch {
        return false; // it has exited meanwhile
      }
    })
    .map(Number);
}

/** Runner processes of dev with this working directory. */
export function runnersIn(folder: string): number[] {
  return processesWith("runner-child").filter((pid) => {
    try {
      return readlinkSync(join("/proc", String(pid), "cwd")) === folder;
    } catch {
      return false; // it has exited meanwhile
    }
  });
}

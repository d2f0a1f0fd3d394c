import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { plainEnv } from "./plain-env.ts";

const program = resolve(import.meta.dirname, "../../bin/durable-tape.js");

/** `durable-tape dev` in a process, and what it has written so far, without colours. */
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
      child.kill("SIGTERM"); // it takes its children along
      await this.ended();
    });
  }

  /** Without a terminal. */
  static plain(args: readonly string[], cwd: string): Dev {
    return new Dev(spawn(process.execPath, [program, "dev", ...args], { cwd, env: plainEnv }));
  }

  /** In a pseudo-terminal, which `script` makes; it is in every Debian. */
  static inTerminal(args: readonly string[], cwd: string): Dev {
    const words = [process.execPath, program, "dev", ...args].map((word) => `'${word.replaceAll("'", "'\\''")}'`);
    const command = `stty cols 100 rows 40; exec ${words.join(" ")}`;
    return new Dev(spawn("script", ["-qfec", command, "/dev/null"], { cwd, env: { ...plainEnv, TERM: "xterm" } }));
  }

  /** Everything written, as text; `from` is a place in it that {@link mark} gave. */
  text(from = 0): string {
    return stripVTControlCharacters(this.#raw.slice(from)).replaceAll("\r", "");
  }

  /** As it was written, colours and all. */
  get raw(): string {
    return this.#raw;
  }

  mark(): number {
    return this.#raw.length;
  }

  press(key: string): void {
    this.process.stdin?.write(key);
  }

  /** Waits until it has said so. */
  async says(words: RegExp, from = 0): Promise<RegExpExecArray> {
    for (;;) {
      const found = words.exec(this.text(from));
      if (found !== null) return found;
      const { exitCode, signalCode } = this.process;
      if (exitCode !== null || signalCode !== null) {
        throw new Error(`it ended (${exitCode ?? signalCode}) and never said ${words}: ${this.text().slice(-3_000)}`);
      }
      await sleep(20);
    }
  }

  /** The exit code, once it has ended and everything it said has been read. */
  async ended(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "close");
    return this.process.exitCode;
  }
}

/** Processes of this machine whose command line says so. */
export function processesWith(words: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return readFileSync(join("/proc", name, "cmdline"), "utf8").includes(words);
      } catch {
        return false; // it has gone meanwhile
      }
    })
    .map(Number);
}

/** Runner processes of dev that work in this folder. */
export function runnersIn(folder: string): number[] {
  return processesWith("runner-child").filter((pid) => {
    try {
      return readlinkSync(join("/proc", String(pid), "cwd")) === folder;
    } catch {
      return false; // it has gone meanwhile
    }
  });
}

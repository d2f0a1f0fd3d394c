import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { plainEnv } from "./plain-env.ts";

const root = resolve(import.meta.dirname, "../..");
export const program = join(root, "bin/tape-reactors.js");
export const library = JSON.stringify(join(root, "src/exports/index.ts"));

/** A user's project: a temporary folder with these files. */
export function project(files: Readonly<Record<string, string>>): string {
  const folder = mkdtempSync(join(tmpdir(), "tape-reactors-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  for (const [name, text] of Object.entries({ "package.json": '{ "type": "module" }', ...files })) {
    mkdirSync(join(folder, name, ".."), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

export interface LogLine {
  readonly event: string;
  readonly level: string;
  readonly [field: string]: unknown;
}

/** A tape-reactors process and its log. */
export class Sidecar {
  readonly process: ChildProcess;
  readonly lines: LogLine[] = [];
  readonly other: string[] = [];
  #stdout = "";

  constructor(folder: string, args: readonly string[] = [], env: Readonly<Record<string, string>> = {}) {
    const child = spawn(process.execPath, [program, ...args], { cwd: folder, env: { ...plainEnv, ...env } });
    this.process = child;
    child.stdout.on("data", (data: Buffer) => {
      this.#stdout += data.toString();
    });
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.startsWith("{")) this.lines.push(JSON.parse(line) as LogLine);
      else this.other.push(line);
    });
    onTestFinished(() => void child.kill("SIGKILL"));
  }

  get stdout(): string {
    return this.#stdout;
  }

  logged(event: string): LogLine | undefined {
    return this.lines.find((line) => line.event === event);
  }

  /** The exit code, once the process has ended and its output has been read. */
  async ended(): Promise<number | null> {
    if (this.process.exitCode === null && this.process.signalCode === null) await once(this.process, "close");
    return this.process.exitCode;
  }

  async stop(signal: "SIGTERM" | "SIGINT" = "SIGTERM"): Promise<number | null> {
    this.process.kill(signal);
    return this.ended();
  }

  /** Polls until there is a result; fails once the process has ended. */
  async until<T>(poll: () => T | undefined | false | Promise<T | undefined | false>): Promise<T> {
    for (;;) {
      const found = await poll();
      if (found !== undefined && found !== false) return found;
      if (this.process.exitCode !== null) {
        throw new Error(
          `it ended with ${this.process.exitCode}: ${this.other.join("\n")} ${JSON.stringify(this.lines)}`,
        );
      }
      await sleep(20);
    }
  }
}

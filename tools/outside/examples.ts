import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Example, examplesIn } from "../../test/docs/examples.ts";
import { program } from "../../test/totals.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "..", "..");

/** The examples of a page of the docs, as files in a folder of a suite: the compiler and Node find its framework. */
export class PageExamples {
  readonly named: readonly Example[];
  readonly unnamed: readonly string[];
  readonly #folder: string;

  /** `suite`: the folder with the tree of the framework. */
  constructor(page: string, suite: string) {
    const { named, unnamed } = examplesIn(join(root, "docs", page));
    this.named = named;
    this.unnamed = unnamed;
    this.#folder = mkdtempSync(join(suite, ".docs-"));
    for (const { name, source } of named) writeFileSync(join(this.#folder, `${name}.ts`), source);
    const settings = {
      extends: "../tsconfig.json",
      compilerOptions: { noUnusedLocals: false, paths: pathsFrom("..") },
      include: ["*.ts"],
    };
    writeFileSync(join(this.#folder, "tsconfig.json"), JSON.stringify(settings));
  }

  /** What the compiler finds, in strict mode; nothing: they compile. */
  async faults(): Promise<string> {
    const tsc = [program("typescript", "tsc"), "--noEmit", "-p", this.#folder];
    const { stdout } = await run(process.execPath, tsc).catch((error: { stdout: string }) => error);
    return stdout;
  }

  /** Runs one as a program, and returns its lines. */
  async linesOf(name: string, env: Readonly<Record<string, string>> = {}): Promise<string[]> {
    const options = { env: { ...process.env, ...env }, cwd: this.#folder, timeout: 60_000 };
    const { stdout } = await run(process.execPath, [join(this.#folder, `${name}.ts`)], options);
    return stdout.trim().split("\n");
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

const pathsFrom = (suite: string): Record<string, string[]> => ({
  "durable-tape": [`${suite}/src/exports/index.ts`],
  "durable-tape/testing": [`${suite}/testkit/index.ts`],
  "durable-tape/*": [`${suite}/src/exports/*.ts`],
});

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Patch, patched } from "./bug.ts";
import type { SeedRequest, SeedResult } from "./seed-runner.ts";

const root = resolve(import.meta.dirname, "../..");
const seedRunner = join(import.meta.dirname, "seed-runner.ts");
/** A bug that makes the program loop must not block the suite. */
const requestTimeoutMs = 120_000;

/** A copy of the sources in which bugs are planted one after another. The real sources are never changed. */
export class PatchedCopy {
  readonly folder = mkdtempSync(join(tmpdir(), "tape-planted-"));
  readonly #closed = new AbortController();
  #process: ChildProcess | undefined;
  #requests = 0;

  constructor() {
    for (const part of ["src", "testkit", "simulation"]) {
      cpSync(join(root, part), join(this.folder, part), { recursive: true });
    }
    cpSync(join(root, "package.json"), join(this.folder, "package.json"));
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
  }

  /** Runs seeds with these patches applied, then removes the patches. */
  async run(
    patches: readonly Patch[],
    request: Omit<SeedRequest, "folder" | "number" | "patched">,
  ): Promise<SeedResult> {
    const originals = new Map<string, string>();
    try {
      for (const patch of patches) {
        const file = join(this.folder, "src", patch.file);
        const text = readFileSync(file, "utf8");
        if (!originals.has(file)) originals.set(file, text);
        writeFileSync(file, patched(text, patch));
      }
      const files = [...new Set(patches.map(({ file }) => file))];
      return await this.#send({ folder: this.folder, number: ++this.#requests, patched: files, ...request });
    } finally {
      if (!this.#closed.signal.aborted) for (const [file, text] of originals) writeFileSync(file, text);
    }
  }

  /** Stops the seeds that still run here. */
  close(): void {
    this.#closed.abort();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One process serves one bug after another until a bug ends the process. */
  async #send(request: SeedRequest): Promise<SeedResult> {
    const used = this.#process !== undefined;
    this.#process ??= fork(seedRunner, { signal: this.#closed.signal, cwd: this.folder }).on("error", () => {});
    const child = this.#process;
    const settled = new AbortController();
    const { signal } = settled;
    const timer = setTimeout(() => child.kill("SIGKILL"), requestTimeoutMs);
    try {
      child.send(request);
      const result = once(child, "message", { signal }).then(([message]) => message as SeedResult);
      const exit = once(child, "exit", { signal }).then(([code, by]) => ({ code, by }) as const);
      const first = await Promise.race([result, exit]);
      if ("others" in first) return first;
      this.#process = undefined;
      // An earlier bug may have ended the process, so the request is repeated once in a process of its own.
      if (used && first.by !== "SIGKILL" && !this.#closed.signal.aborted) return await this.#send(request);
      throw new Error(`the seed runner exited with ${first.code ?? first.by} before it returned a result`);
    } finally {
      clearTimeout(timer);
      settled.abort();
    }
  }
}

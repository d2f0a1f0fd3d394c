import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Patch, patched } from "./bug.ts";
import type { Asked, Played } from "./player.ts";

const root = resolve(import.meta.dirname, "../..");
const player = join(import.meta.dirname, "player.ts");
/** A bug that makes the program go in circles must not keep the suite. */
const patienceMs = 120_000;

/** A copy of the sources, in which bugs are planted one after the other: the real ones are never touched. */
export class Workshop {
  readonly folder = mkdtempSync(join(tmpdir(), "tape-planted-"));
  readonly #closed = new AbortController();
  #process: ChildProcess | undefined;
  #asked = 0;

  constructor() {
    for (const part of ["src", "testkit", "simulation"]) {
      cpSync(join(root, part), join(this.folder, part), { recursive: true });
    }
    cpSync(join(root, "package.json"), join(this.folder, "package.json"));
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
  }

  /** Plays seeds with these patches applied, and takes them back. */
  async play(patches: readonly Patch[], asked: Omit<Asked, "folder" | "number">): Promise<Played> {
    const healthy = new Map<string, string>();
    try {
      for (const patch of patches) {
        const file = join(this.folder, "src", patch.file);
        const text = readFileSync(file, "utf8");
        if (!healthy.has(file)) healthy.set(file, text);
        writeFileSync(file, patched(text, patch));
      }
      return await this.#ask({ folder: this.folder, number: ++this.#asked, ...asked });
    } finally {
      if (!this.#closed.signal.aborted) for (const [file, text] of healthy) writeFileSync(file, text);
    }
  }

  /** Ends what still plays here. */
  close(): void {
    this.#closed.abort();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One process plays one bug after the other, until one of them is its end. */
  async #ask(asked: Asked): Promise<Played> {
    const used = this.#process !== undefined;
    this.#process ??= fork(player, { signal: this.#closed.signal, cwd: this.folder }).on("error", () => {});
    const child = this.#process;
    const settled = new AbortController();
    const { signal } = settled;
    const timer = setTimeout(() => child.kill("SIGKILL"), patienceMs);
    try {
      child.send(asked);
      const answer = once(child, "message", { signal }).then(([played]) => played as Played);
      const end = once(child, "exit", { signal }).then(([code, by]) => ({ code, by }) as const);
      const first = await Promise.race([answer, end]);
      if ("besides" in first) return first;
      this.#process = undefined;
      // Something of an earlier bug may have been its end: by itself, this one has nobody else to blame.
      if (used && first.by !== "SIGKILL" && !this.#closed.signal.aborted) return await this.#ask(asked);
      throw new Error(`the player ended with ${first.code ?? first.by} before it had an answer`);
    } finally {
      clearTimeout(timer);
      settled.abort();
    }
  }
}

import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
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

  constructor() {
    cpSync(join(root, "src"), join(this.folder, "src"), { recursive: true });
    cpSync(join(root, "package.json"), join(this.folder, "package.json"));
    symlinkSync(join(root, "node_modules"), join(this.folder, "node_modules"));
  }

  /** Plays seeds with these patches applied, and takes them back. */
  async play(patches: readonly Patch[], asked: Omit<Asked, "folder">): Promise<Played> {
    const healthy = new Map<string, string>();
    try {
      for (const patch of patches) {
        const file = join(this.folder, "src", patch.file);
        const text = readFileSync(file, "utf8");
        if (!healthy.has(file)) healthy.set(file, text);
        writeFileSync(file, patched(text, patch));
      }
      const args = [player, JSON.stringify({ folder: this.folder, ...asked } satisfies Asked)];
      const { stdout } = await promisify(execFile)(process.execPath, args, {
        timeout: patienceMs,
        signal: this.#closed.signal,
        maxBuffer: 64 * 1024 * 1024,
        cwd: this.folder,
        env: { NODE_COMPILE_CACHE: join(this.folder, "compiled"), ...process.env },
      });
      return JSON.parse(stdout) as Played;
    } finally {
      if (!this.#closed.signal.aborted) for (const [file, text] of healthy) writeFileSync(file, text);
    }
  }

  /** Ends what still plays here. */
  close(): void {
    this.#closed.abort();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

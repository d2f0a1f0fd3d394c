import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..", "..");
const link = join(import.meta.dirname, "link.ts");

/**
 * Installs the folder's tree by its lock file, unless it is there. The links `src` and `testkit` are the project's sources
 * as this folder sees them: the compiler resolves the frameworks that they import from the tree beside them.
 */
export function prepare(folder: string): void {
  for (const name of ["src", "testkit"]) {
    rmSync(join(folder, name), { force: true });
    symlinkSync(join("..", "..", "..", name), join(folder, name));
  }
  const lock = join(folder, "package-lock.json");
  if (!existsSync(lock)) return;
  const hash = createHash("sha256").update(readFileSync(lock)).digest("hex");
  const mark = join(folder, "node_modules", ".installed");
  if (existsSync(mark) && readFileSync(mark, "utf8") === hash) return;
  execFileSync("npm", ["ci", "--ignore-scripts"], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  writeFileSync(mark, hash);
}

/** Every Node process that a suite starts finds `durable-tape` in the sources, and the frameworks in its folder. */
export function environmentOf(folder: string): NodeJS.ProcessEnv {
  const path = [join(root, "node_modules", ".bin"), process.env.PATH].join(":");
  return { ...process.env, PATH: path, TAPE_OUTSIDE: folder, NODE_OPTIONS: `--import=${JSON.stringify(link)}` };
}

import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findFaketime } from "./faults/clock.ts";
import { SmallDisk } from "./small-disk.ts";

/** The tools that faults need. `why` is the reason why this machine lacks one. */
export interface Tools {
  readonly faketime: { readonly library: string } | { readonly why: string };
  readonly preload: { readonly library: string } | { readonly why: string };
  readonly mounts: { readonly ok: true } | { readonly why: string };
  readonly limits: { readonly ok: true } | { readonly why: string };
}

const isInstalled = (command: string): boolean =>
  spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;

/** Finds the tools, and compiles the preload into that folder. */
export function findTools(folder: string): Tools {
  const library = findFaketime();
  makeReadable(folder);
  return {
    faketime: library === undefined ? { why: "libfaketime is not installed (Debian: faketime)" } : { library },
    preload: compilePreload(folder),
    mounts: findMounts(),
    limits: isInstalled("prlimit") ? { ok: true } : { why: "prlimit is not installed (Debian: util-linux)" },
  };
}

function compilePreload(folder: string): Tools["preload"] {
  if (process.platform !== "linux") return { why: "the preload needs Linux" };
  const compiler = ["cc", "gcc", "clang"].find(isInstalled);
  if (compiler === undefined) return { why: "there is no C compiler (cc, gcc or clang)" };
  const source = fileURLToPath(new URL("preload/unsynced.c", import.meta.url));
  const library = join(folder, "unsynced.so");
  const { status, stderr } = spawnSync(compiler, ["-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"]);
  return status === 0 ? { library } : { why: `${compiler} does not compile the preload: ${String(stderr).trim()}` };
}

function findMounts(): Tools["mounts"] {
  const folder = mkdtempSync(join(tmpdir(), "tape-chaos-mount-"));
  try {
    const disk = new SmallDisk(join(folder, "disk"), 1);
    disk.close();
    return { ok: true };
  } catch {
    return { why: "a small disk cannot be mounted here (it needs root)" };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** PostgreSQL runs as another user, which must be able to reach its data below this folder. */
export function makeReadable(folder: string): void {
  chmodSync(folder, 0o755);
}

import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findFaketime } from "./faults/clock.ts";

/** What this machine has of what faults need; a text says why it has not. */
export interface Tools {
  readonly faketime: { readonly library: string } | { readonly why: string };
  readonly preload: { readonly library: string } | { readonly why: string };
  readonly mounts: { readonly ok: true } | { readonly why: string };
  readonly limits: { readonly ok: true } | { readonly why: string };
}

const here = (command: string): boolean => spawnSync(command, ["--version"], { stdio: "ignore" }).error === undefined;

/** Looks around, and compiles what has to be compiled into that folder. */
export function findTools(folder: string): Tools {
  const library = findFaketime();
  openWay(folder);
  return {
    faketime: library === undefined ? { why: "libfaketime is not installed (Debian: faketime)" } : { library },
    preload: compiled(folder),
    mounts: mountable(),
    limits: here("prlimit") ? { ok: true } : { why: "prlimit is not installed (Debian: util-linux)" },
  };
}

function compiled(folder: string): Tools["preload"] {
  if (process.platform !== "linux") return { why: "the preload is for Linux" };
  const compiler = ["cc", "gcc", "clang"].find(here);
  if (compiler === undefined) return { why: "there is no C compiler (cc, gcc or clang)" };
  const source = fileURLToPath(new URL("preload/unsynced.c", import.meta.url));
  const library = join(folder, "unsynced.so");
  const { status, stderr } = spawnSync(compiler, ["-shared", "-fPIC", "-O2", "-o", library, source, "-ldl"]);
  return status === 0 ? { library } : { why: `${compiler} does not compile the preload: ${String(stderr).trim()}` };
}

function mountable(): Tools["mounts"] {
  const folder = mkdtempSync(join(tmpdir(), "tape-chaos-mount-"));
  try {
    const disk = new SmallDisk(join(folder, "disk"), 1);
    disk.close();
    return { ok: true };
  } catch {
    return { why: "a small disk cannot be mounted here (it takes root)" };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A file system of a few megabytes in memory, so that it can be filled up. */
export class SmallDisk {
  readonly folder: string;
  #mounted = true;

  constructor(folder: string, megabytes: number) {
    this.folder = folder;
    mkdirSync(folder);
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m,mode=0777`, "tape-chaos", folder], {
      stdio: "ignore",
    });
    process.once("exit", this.close);
  }

  readonly close = (): void => {
    if (!this.#mounted) return;
    this.#mounted = false;
    process.off("exit", this.close);
    // Lazily: a process that was just killed may still be letting go of it.
    spawnSync("umount", ["-l", this.folder], { stdio: "ignore" });
    if (existsSync(this.folder)) rmdirSync(this.folder);
  };
}

/** Servers run as another user: the way to their data must be open. */
export function openWay(folder: string): void {
  chmodSync(folder, 0o755);
}

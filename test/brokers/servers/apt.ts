import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** Where unpacked servers stay from one run to the next. */
export const cache = process.env.TAPE_TEST_SERVERS ?? join(homedir(), ".cache", "tape-test-servers");

/** No lock of the machine's own apt is taken, and nothing is installed: archives are unpacked into the cache. */
const quiet = ["-qq", "-o", "Debug::NoLocking=true", "-o", "APT::Sandbox::User=root"];

function apt(args: readonly string[], cwd: string): void {
  const { status, stderr, error } = spawnSync("apt-get", [...quiet, ...args], { cwd, encoding: "utf8" });
  if (error !== undefined) throw new Error(`apt-get cannot be run: ${error.message}`);
  if (status !== 0) throw new Error(`apt-get ${args.join(" ")}: ${stderr.trim().split("\n").at(-1)}`);
}

/** A second try after an update: a fresh machine has no package lists. */
function aptOrUpdate(args: readonly string[], cwd: string): void {
  try {
    apt(args, cwd);
  } catch (error) {
    if (process.getuid?.() !== 0) throw error;
    apt(["update"], cwd);
    apt(args, cwd);
  }
}

/** Puts the archives of a package into a folder, with those libraries that this machine lacks. */
export function withLibraries(name: string) {
  return (folder: string): void => {
    mkdirSync(join(folder, "partial"));
    const archives = `Dir::Cache::archives=${folder}/`;
    aptOrUpdate(["install", "--download-only", "-y", "--no-install-recommends", "-o", archives, name], folder);
  };
}

/** Puts the archive of a package into a folder, without what it depends on. */
export function alone(name: string) {
  return (folder: string): void => aptOrUpdate(["download", name], folder);
}

/** An archive by its place below a mirror of Debian, and its checksum. */
export interface Pin {
  readonly path: string;
  readonly sha256: string;
}

/**
 * Puts a pinned archive into a folder, from the mirror that this machine is set up for. A mirror drops an old version of
 * Debian's unstable suite; then the present one is taken from the signed index of that suite.
 */
export function pinned(name: string, pin: Pin | undefined) {
  return (folder: string): void => {
    const targets = execFileSync("apt-get", ["indextargets", "--format", "$(REPO_URI)"], { encoding: "utf8" });
    const mirrors = [...new Set(targets.split("\n").filter((line) => line !== ""))];
    const helper = ["-o", "APT::Sandbox::User=root", "download-file"];
    for (const mirror of pin === undefined ? [] : mirrors) {
      const args = [...helper, `${mirror}${pin!.path}`, join(folder, `${name}.deb`), `SHA256:${pin!.sha256}`];
      if (spawnSync("/usr/lib/apt/apt-helper", args).status === 0) return;
    }
    const reasons = mirrors.map((mirror) => fromUnstable(name, mirror, folder));
    if (!reasons.includes(undefined)) throw new Error(reasons.join("; ") || "apt has no sources on this machine");
  };
}

/** Returns the reason if the mirror does not have it. apt keeps the index of this suite apart from the machine's own. */
function fromUnstable(name: string, mirror: string, folder: string): string | undefined {
  const state = mkdtempSync(join(folder, "apt-"));
  for (const part of ["lists/partial", "archives/partial"]) mkdirSync(join(state, part), { recursive: true });
  const list = join(state, "sid.list");
  writeFileSync(list, `deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] ${mirror} sid main\n`);
  const settings = { State: state, "State::status": "/var/lib/dpkg/status", Cache: state, "Etc::sourcelist": list };
  const options = Object.entries({ ...settings, "Etc::sourceparts": "/dev/null" });
  const own = options.flatMap(([key, value]) => ["-o", `Dir::${key}=${value}`]);
  try {
    apt([...own, "update"], folder);
    apt([...own, "download", name], folder);
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
}

/** Unpacks what `fetch` brings, once: the folder gets its name when it is whole. `only`: paths inside the archives. */
export function unpacked(name: string, fetch: (folder: string) => void, only: readonly string[]): string {
  const folder = join(cache, name);
  mkdirSync(cache, { recursive: true });
  if (readdirSync(cache).includes(name)) return folder;
  const draft = mkdtempSync(`${folder}.`);
  try {
    const archives = join(draft, "archives");
    mkdirSync(archives);
    fetch(archives);
    for (const file of readdirSync(archives).filter((entry) => entry.endsWith(".deb"))) {
      const paths = only.map((path) => `'./${path}'`).join(" ");
      const extract = `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --wildcards ${paths} 2>/dev/null || true`;
      execFileSync("sh", ["-c", extract, "sh", join(archives, file), draft]);
    }
    rmSync(archives, { recursive: true });
    renameSync(draft, folder);
  } catch (error) {
    rmSync(draft, { recursive: true, force: true });
    if (!readdirSync(cache).includes(name)) throw error; // otherwise another process was faster
  }
  return folder;
}

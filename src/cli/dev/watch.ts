import { type FSWatcher, readdirSync, watch } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../base/clock.ts";

export interface WatchOptions {
  /** Watched for source files, including its subfolders. */
  readonly folder: string;
  /** One more watched file, anywhere. */
  readonly file: string | undefined;
  readonly clock: Clock;
  /** Called once per burst of changes, with the name of the last changed file. */
  readonly changed: (name: string) => void;
}

/** Code only: the running program may write JSON files itself. */
const source = /\.[cm]?[jt]sx?$/;
/** Editors write a file in several steps; a build writes many files. */
const quietMs = 100;
/** A folder with more subfolders is not just a project, and the system has few watches. */
const maxFolders = 500;

/**
 * Watches a project's own files, with one watch per folder. A recursive watch would include node_modules and folders that
 * begin with a dot (such as the store's), which are large and change all the time.
 */
export function watchSources({ folder, file, clock, changed }: WatchOptions): () => void {
  const watchers = new Map<string, FSWatcher>();
  let cancel: () => void = () => {};
  const inside = (path: string): boolean => path === folder || path.startsWith(join(folder, "/"));
  const onChange = (path: string, name: string): void => {
    if (join(path, name) !== file && !(inside(path) && source.test(name))) return;
    cancel();
    cancel = clock.after(quietMs, () => changed(name));
  };
  const add = (path: string): void => {
    if (watchers.has(path) || watchers.size >= maxFolders) return;
    try {
      const watcher = watch(path, (event, name) => {
        if (event === "rename" && inside(path)) scan(); // perhaps a new folder
        if (name !== null) onChange(path, name);
      });
      watcher.on("error", () => forget(path)); // the folder is gone
      watchers.set(path, watcher);
    } catch {
      // gone between the listing and the watch
    }
  };
  const forget = (path: string): void => {
    watchers.get(path)?.close();
    watchers.delete(path);
  };
  const scan = (): void => {
    const found = new Set(foldersIn(folder));
    for (const path of watchers.keys()) if (inside(path) && !found.has(path)) forget(path);
    for (const path of found) add(path);
  };
  scan();
  if (file !== undefined) add(dirname(file));
  return () => {
    cancel();
    for (const watcher of watchers.values()) watcher.close();
  };
}

function foldersIn(folder: string): string[] {
  const found = [folder];
  for (let k = 0; k < found.length && found.length < maxFolders; k++) {
    let entries: ReturnType<typeof list>;
    try {
      entries = list(found[k]!);
    } catch {
      continue; // gone since it was listed
    }
    for (const entry of entries) {
      if (entry.isDirectory() && entry.name !== "node_modules" && !entry.name.startsWith(".")) {
        found.push(join(found[k]!, entry.name));
      }
    }
  }
  return found;
}

const list = (folder: string) => readdirSync(folder, { withFileTypes: true });

import { readdirSync, readFileSync } from "node:fs";

/** SQL files of one folder: their text by file name, in the order of the names. */
export type SqlFiles = ReadonlyMap<string, string>;

/**
 * Reads the folder. The published package has none: the build replaces the call by the text of the files
 * (tools/build/places.ts), so a caller creates the URL within the call, relative to its own module.
 */
export function sqlFiles(folder: URL): SqlFiles {
  const files = readdirSync(folder).filter((file) => file.endsWith(".sql"));
  return new Map(files.sort().map((file) => [file, readFileSync(new URL(file, folder), "utf8")]));
}

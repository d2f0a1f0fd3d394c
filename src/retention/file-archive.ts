import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import type { Archive } from "./archive.ts";

/** A temporary file that is older than this belongs to a process that has crashed. */
const abandonedMs = 3_600_000;
const temporary = ".tmp";

/**
 * An archive in a folder. A file appears under its name only when its bytes are on the disk: it is written under another
 * name, synchronised, renamed, and the folder is synchronised. Only the owner can read it.
 */
export function fileArchive(folder: string, { clock, random }: { clock: Clock; random: Random }): Archive {
  const root = resolve(folder);
  const swept = new Set<string>();
  const pathOf = (name: string): string => {
    const parts = name.split("/");
    if (parts.some((part) => !/^[A-Za-z0-9%_-][A-Za-z0-9%._-]*$/.test(part)))
      throw new TapeError("TAPE_BAD_INPUT", `${name} is not the name of an archived file`, { field: "archive" });
    return join(root, ...parts);
  };
  return {
    label: `file:${root}`,
    async put(name, body) {
      const path = pathOf(name);
      const parent = dirname(path);
      await createFolder(parent);
      if (!swept.has(parent)) {
        swept.add(parent);
        await sweepTemporary(parent, clock.wall());
      }
      const written = `${path}.${random.bits63().toString(36)}${temporary}`;
      try {
        await using file = await open(written, "wx", 0o600);
        for await (const chunk of body) await writeAll(file, chunk);
        await file.sync();
      } catch (error) {
        await rm(written, { force: true });
        throw error;
      }
      await rename(written, path);
      await syncFolder(parent);
    },
    async has(name, sha256) {
      const hash = createHash("sha256");
      const body = await opened(pathOf(name));
      if (body === undefined) return false;
      for await (const chunk of body) hash.update(chunk as Uint8Array);
      return hash.digest("hex") === sha256;
    },
    get: async (name) => opened(pathOf(name)),
    async remove(name) {
      const path = pathOf(name);
      await rm(path, { force: true });
      await syncFolder(dirname(path)).catch(missing);
    },
  };
}

async function writeAll(file: FileHandle, chunk: Uint8Array): Promise<void> {
  for (let at = 0; at < chunk.length; ) at += (await file.write(chunk, at)).bytesWritten;
}

async function opened(path: string): Promise<AsyncIterable<Uint8Array> | undefined> {
  const found = await stat(path).catch(missing);
  return found?.isFile() ? createReadStream(path) : undefined;
}

/** Each new folder is durable before a file in it is. */
async function createFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let at = path; at.length >= first.length; at = dirname(at)) await syncFolder(dirname(at));
}

async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, "r");
  await folder.sync();
}

async function sweepTemporary(folder: string, now: number): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.endsWith(temporary)) continue;
    const path = join(folder, name);
    const found = await stat(path).catch(missing);
    if (found !== undefined && now - found.mtimeMs > abandonedMs) await rm(path, { force: true });
  }
}

function missing(error: unknown): undefined {
  if ((error as { code?: unknown }).code === "ENOENT") return undefined;
  throw error;
}

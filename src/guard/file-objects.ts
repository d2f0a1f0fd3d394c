import { link, mkdir, open, readdir, readFile, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import { type Random, systemRandom } from "../base/random.ts";
import { TapeError } from "../model/errors.ts";
import type { ConditionalObjects, StoredObject } from "./objects.ts";

/** A longer key does not fit into a file name once it is encoded. */
const maxKeyLength = 80;
const hasCode = (error: unknown, code: string): boolean => (error as NodeJS.ErrnoException).code === code;

/**
 * Objects in a folder of a local file system, for {@link guardObject}. Each object is a folder with a file for each
 * version; the highest number counts. Creating a file by `link` fails if its name exists: that is the conditional write.
 * Older versions are removed. A file system shared over a network must have an atomic `link`.
 *
 * @example
 * await guardObject(fileObjects("./reports"), lease, "monday.json", JSON.stringify(report));
 */
export function fileObjects(folder: string, random: Random = systemRandom): ConditionalObjects<string> {
  const folderOf = (key: string): string => {
    if (typeof key !== "string" || key === "" || key.length > maxKeyLength) {
      const message = `the key of an object has 1 to ${maxKeyLength} characters`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: "key" });
    }
    return join(folder, `o-${encodeURIComponent(key).replaceAll("*", "%2A")}`);
  };
  return {
    async get(key) {
      const path = folderOf(key);
      for (;;) {
        const version = (await versionsOf(path)).at(-1);
        if (version === undefined) return undefined;
        try {
          return parsed(String(version), await readFile(join(path, String(version)), "utf8"));
        } catch (error) {
          if (!hasCode(error, "ENOENT")) throw error; // removed since, because a newer one exists
        }
      }
    },
    async put(key, { body, fence }, match) {
      const path = folderOf(key);
      await mkdir(path, { recursive: true });
      const next = match === undefined ? 1 : Number(match) + 1;
      const draft = join(path, `draft-${random.bits63().toString(36)}`);
      await writeDurably(draft, `${JSON.stringify(fence)}\n${body}`);
      try {
        await link(draft, join(path, String(next)));
      } catch (error) {
        if (hasCode(error, "EEXIST")) return false;
        throw error;
      } finally {
        await unlink(draft);
      }
      // A lower number than the highest is free again once it was removed: then others were faster.
      const versions = await versionsOf(path);
      if (versions.at(-1) !== next) {
        await rm(join(path, String(next)), { force: true });
        return false;
      }
      await syncFolder(path);
      for (const old of versions.slice(0, -1)) await rm(join(path, String(old)), { force: true });
      return true;
    },
  };
}

/** The numbers of the versions, lowest first. */
async function versionsOf(path: string): Promise<number[]> {
  try {
    const names = await readdir(path);
    return names
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .sort((a, b) => a - b);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return [];
    throw error;
  }
}

function parsed(version: string, text: string): StoredObject<string> {
  const cut = text.indexOf("\n");
  return { version, fence: JSON.parse(text.slice(0, cut)) as string, body: text.slice(cut + 1) };
}

async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, "wx");
  await file.writeFile(text);
  await file.sync();
}

/** A new name is durable once its folder is. Systems that cannot open a folder have no such rule. */
async function syncFolder(path: string): Promise<void> {
  try {
    await using folder = await open(path, "r");
    await folder.sync();
  } catch (error) {
    if (!hasCode(error, "EISDIR") && !hasCode(error, "EPERM") && !hasCode(error, "EACCES")) throw error;
  }
}

import { TapeError } from "../model/errors.ts";
import type { ShardUrl } from "../store/postgres/shards/open.ts";

/**
 * A list of shards as one text, so that it fits wherever a store's URL does: an option, a variable, `Tape.open`.
 *
 *   shards:eu=postgres://tape@db1/tape;us=postgres://tape@db2/tape
 *
 * A semicolon in a password is written %3B, as in every URL.
 */
const scheme = "shards:";

export const isShardList = (url: string): boolean => url.startsWith(scheme);

export function shardListText(shards: Readonly<Record<string, string>>): string {
  return `${scheme}${Object.entries(shards)
    .map(([name, url]) => `${name}=${url}`)
    .join(";")}`;
}

export function parseShardList(text: string): ShardUrl[] {
  return text
    .slice(scheme.length)
    .split(";")
    .filter((part) => part.trim() !== "")
    .map((part) => {
      const [, name, url] = /^\s*([^=:/?]+)=((?:postgres|postgresql|alloydb):\S+)\s*$/.exec(part) ?? [];
      if (name !== undefined && url !== undefined) return { name, url };
      const message = "a list of shards is shards:NAME=postgres://…;NAME=postgres://…";
      throw new TapeError("TAPE_BAD_STORE_URL", message, { key: "shards" });
    });
}

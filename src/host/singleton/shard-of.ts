import { TapeError } from "../../model/errors.ts";

/** More shards than processes that could ever hold them: probably a mistake. */
export const maxShards = 1_024;

/** 32-bit FNV-1a over UTF-8. It never changes: a key would move to another shard. */
export function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/**
 * The shard of a key, from 0 to `shards` - 1. The same key always has the same shard, on every machine and in every
 * version.
 *
 * @example
 * const mine = sandboxes.filter(({ id }) => shardOf(id, 16) === shard.index);
 */
export function shardOf(key: string, shards: number): number {
  if (typeof key !== "string" || !Number.isSafeInteger(shards) || shards < 1 || shards > maxShards) {
    throw new TapeError("TAPE_BAD_INPUT", `shardOf takes a text and a number from 1 to ${maxShards}`, { shards });
  }
  return fnv1a(key) % shards;
}

/** A shard by its numbers, such as 3 of 16. */
export interface ShardNumber {
  readonly index: number;
  readonly of: number;
}

/** The name of a shard's lease. */
export const shardName = (name: string, { index, of }: ShardNumber): string => `${name} ${index}/${of}`;

/** The prefix of the leases of all shards, of any number. */
export const shardPrefix = (name: string): string => `${name} `;

/** The shard whose lease has this name; undefined: it is no shard of this singleton. */
export function shardIn(name: string, lease: string | null): ShardNumber | undefined {
  if (lease?.startsWith(shardPrefix(name)) !== true) return undefined;
  const match = /^(\d{1,4})\/(\d{1,4})$/.exec(lease.slice(shardPrefix(name).length));
  return match === null ? undefined : { index: Number(match[1]), of: Number(match[2]) };
}

import { TapeError } from "../../../model/errors.ts";
import { maxShards } from "../../../model/journal-numbers.ts";
import { joinSet, keysOf } from "./join.ts";
import { announce, type ShardsOptions, withAccess } from "./open.ts";
import { peek } from "./peek.ts";

/**
 * Makes the database of a new name in the list a shard of the set. All other shards must be reachable, because each has
 * the list. Killed anywhere and repeated, it completes. New tenants come to it from then on; existing ones stay.
 */
export async function addShard(options: ShardsOptions, name: string): Promise<{ readonly number: number }> {
  const { shards: list } = options;
  const added = list.find((shard) => shard.name === name);
  if (added === undefined) throw refused(`add ${name} with its URL to the list of shards first`, name);
  const others = list.filter((shard) => shard !== added);
  const peeked = await Promise.all(others.map(async ({ url }) => peek(url)));
  for (const [k, found] of peeked.entries()) {
    if ("down" in found) throw found.down;
    if ("blank" in found) throw refused(`${others[k]!.name} is no shard yet: open the list without ${name} once`, name);
  }
  const directory = peeked.find((found) => "identity" in found && found.identity.number === 0);
  if (directory === undefined || !("identity" in directory)) throw refused("the list lacks the first shard", name);
  const { roster } = directory;
  const number = roster.find((row) => row.name === name)?.number ?? Math.max(...roster.map((row) => row.number)) + 1;
  if (number >= maxShards) throw refused(`a set has at most ${maxShards} shards`, name);
  const own = await peek(added.url);
  if ("down" in own) throw own.down;
  const isOther = "identity" in own && (own.identity.set !== directory.identity.set || own.identity.name !== name);
  if (isOther) throw refused(`its database is shard ${own.identity.name} already`, name);
  const first = others.find((_, k) => peeked[k] === directory)!;
  await announce({ ...options, shards: others }, { number, name, state: "JOINING" });
  const keys = await withAccess(options, first.url, keysOf);
  await withAccess(options, added.url, (access) => joinSet(access, keys, { number, name }));
  await announce(options, { number, name, state: "OPEN" });
  return { number };
}

const refused = (message: string, shard: string): TapeError => new TapeError("TAPE_SHARD_REFUSED", message, { shard });

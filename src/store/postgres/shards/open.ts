import { systemClock } from "../../../base/clock.ts";
import { defined } from "../../../base/defined.ts";
import { silentLog } from "../../../base/log.ts";
import { systemRandom } from "../../../base/random.ts";
import { TapeError } from "../../../model/errors.ts";
import { maxShards } from "../../../model/journal-numbers.ts";
import type { Store } from "../../contract/store.ts";
import { openSharded } from "../../sharded/compose.ts";
import type { ShardSource } from "../../sharded/shard.ts";
import { openPostgres, type PostgresOptions } from "../open.ts";
import type { ShardAccess } from "./access.ts";
import { PostgresDirectory } from "./directory.ts";
import type { ShardIdentity } from "./identity.ts";
import { enrol, foundSet, joinSet, keysOf } from "./join.ts";
import { shardOps } from "./operations.ts";
import { type PeekResult, peek, type RosterRow } from "./peek.ts";

/** A shard of the list that an operator gives to every process. */
export interface ShardUrl {
  readonly name: string;
  readonly url: string;
}

export interface ShardsOptions extends Omit<PostgresOptions, "url" | "migrations" | "shard"> {
  readonly shards: readonly ShardUrl[];
}

/**
 * Opens several databases as one store. The list is compared with what the databases say about themselves before
 * anything is written. A new set is founded if all of them are new; a shard that is down is opened later.
 */
export async function openShards(options: ShardsOptions): Promise<Store> {
  const { clock = systemClock, random = systemRandom, log = silentLog, shards: list } = options;
  const set = await foundOrKnown(options);
  const accesses = new Map<number, ShardAccess>();
  const sources = list.map(({ name, url }): ShardSource => {
    const number = set.numberOf(name);
    return {
      name,
      number,
      open: () =>
        openPostgres({
          ...seamsOf(options),
          url,
          shard: {
            admit: (found) => assertIs(found, { set: set.id, number, name }),
            opened: async (access) => void accesses.set(number, access),
          },
        }),
    };
  });
  return openSharded({
    ...seamsOf(options),
    shards: sources,
    directory: (shards) => new PostgresDirectory({ shards, access: (number) => accesses.get(number), clock, random }),
    operations: (router) => shardOps(router, { access: accessOf(accesses), clock, random, log }),
  });
}

const accessOf =
  (accesses: ReadonlyMap<number, ShardAccess>) =>
  (shard: number): ShardAccess => {
    const access = accesses.get(shard);
    if (access !== undefined) return access;
    throw new TapeError("TAPE_STORE_UNREACHABLE", `shard ${shard} cannot be reached`, { shard });
  };

interface KnownSet {
  readonly id: string;
  numberOf(name: string): number;
}

const seamsOf = ({ limits, clock, random, log }: ShardsOptions) => defined({ limits, clock, random, log });

async function foundOrKnown(options: ShardsOptions): Promise<KnownSet> {
  const { shards: list, random = systemRandom } = options;
  checkList(list);
  const peeked = new Map(await Promise.all(list.map(async ({ name, url }) => [name, await peek(url)] as const)));
  const known = knownSet(list, peeked);
  if (known !== undefined) {
    for (const { name, url } of list) if ("blank" in peeked.get(name)!) await complete(options, known, { name, url });
    return known;
  }
  for (const [name, found] of peeked) if ("down" in found) throw notFounded(name, found.down);
  const id = await withAccess(options, list[0]!.url, async (access) => {
    const keys = await foundSet(
      access,
      random.uuid(),
      list.map(({ name }) => name),
    );
    return keys.set_id;
  });
  const founded = { id, numberOf: (name: string) => list.findIndex((one) => one.name === name) };
  for (const shard of list.slice(1)) await complete(options, founded, shard);
  return founded;
}

/** Joins a database that the set's list already has: its founder, or the command that added it, stopped before. */
async function complete(options: ShardsOptions, { numberOf }: KnownSet, { name, url }: ShardUrl): Promise<void> {
  const number = numberOf(name);
  const first = options.shards.find((shard) => numberOf(shard.name) === 0)!;
  const keys = await withAccess(options, first.url, keysOf);
  await withAccess(options, url, (access) => joinSet(access, keys, { number, name }));
  await announce(options, { number, name, state: "OPEN" });
}

/** Writes a row of the list of shards to every shard that can be reached; the first one's counts. */
export async function announce(options: ShardsOptions, row: RosterRow): Promise<void> {
  for (const { url } of options.shards) {
    const found = await peek(url);
    if (!("identity" in found)) continue;
    const rows = found.identity.number === 0 ? [row] : [...(await rosterOf(options)), row];
    await withAccess(options, url, (access) =>
      access.session(async (session) => {
        for (const one of rows) await enrol(session, one);
      }),
    );
  }
}

async function rosterOf({ shards }: ShardsOptions): Promise<readonly RosterRow[]> {
  for (const { url } of shards) {
    const found = await peek(url);
    if ("identity" in found && found.identity.number === 0) return found.roster;
  }
  return [];
}

/** Opens one database for the tables of its shard alone. */
export async function withAccess<T>(
  options: ShardsOptions,
  url: string,
  work: (access: ShardAccess) => Promise<T>,
): Promise<T> {
  let value: T;
  const store = await openPostgres({
    ...seamsOf(options),
    url,
    shard: {
      admit: () => {},
      opened: async (access) => {
        value = await work(access);
      },
    },
  });
  await store.close();
  return value!;
}

function checkList(list: readonly ShardUrl[]): void {
  const names = new Set(list.map(({ name }) => name));
  const bad = list.find(({ name }) => !/^[a-z][a-z0-9-]{0,31}$/.test(name));
  const message =
    list.length === 0 || list.length > maxShards
      ? `a list has 1 to ${maxShards} shards`
      : bad !== undefined
        ? `${JSON.stringify(bad.name)} is no name of a shard: small letters, digits and hyphens, at most 32`
        : names.size < list.length
          ? "two shards of the list have the same name"
          : undefined;
  if (message !== undefined) throw new TapeError("TAPE_BAD_STORE_URL", message, { key: "shards" });
}

/** The set that the databases belong to; undefined: none of them is a shard yet. Refuses what does not fit together. */
export function knownSet(list: readonly ShardUrl[], peeked: ReadonlyMap<string, PeekResult>): KnownSet | undefined {
  const marked = list.flatMap(({ name }) => {
    const found = peeked.get(name)!;
    return "identity" in found ? [{ name, ...found }] : [];
  });
  const [any] = marked;
  if (any === undefined) return undefined;
  const directory = marked.find(({ identity }) => identity.number === 0) ?? any;
  const { roster } = directory;
  for (const { name, identity } of marked) {
    if (identity.set !== any.identity.set)
      throw mismatch(name, `${name} and ${any.name} belong to different sets of shards`);
    if (identity.name !== name) throw mismatch(name, `the URL of ${name} leads to shard ${identity.name}`);
  }
  const absent = roster.find(({ name }) => !list.some((shard) => shard.name === name));
  if (absent !== undefined) throw mismatch(absent.name, `the list lacks shard ${absent.name} of the set`);
  for (const { name } of list) {
    if (!roster.some((row) => row.name === name))
      throw mismatch(name, `${name} is not a shard of the set yet: run durable-tape shard add ${name}`);
    if ("blank" in peeked.get(name)! && roster.find((row) => row.name === name)!.state !== "JOINING")
      throw mismatch(name, `the URL of ${name} leads to a database that is not that shard: it is empty`);
  }
  return { id: any.identity.set, numberOf: (name) => roster.find((row) => row.name === name)!.number };
}

function assertIs(found: ShardIdentity | undefined, expected: ShardIdentity): void {
  const { set, number, name } = expected;
  if (found?.set === set && found.number === number && found.name === name) return;
  throw mismatch(name, `the URL of ${name} leads to ${found === undefined ? "no shard" : `shard ${found.name}`}`);
}

const mismatch = (shard: string, message: string): TapeError =>
  new TapeError("TAPE_SHARD_MISMATCH", message, { shard });

const notFounded = (shard: string, cause: TapeError): TapeError =>
  new TapeError(
    "TAPE_STORE_UNREACHABLE",
    `a new set of shards needs all of them, and ${shard} is down`,
    { shard },
    cause,
  );

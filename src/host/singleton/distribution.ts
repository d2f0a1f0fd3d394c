import type { LeaseView } from "../../model/lease.ts";
import { fnv1a, type ShardNumber, shardIn } from "./shard-of.ts";

/** A shard as the store shows it. */
export interface SeenShard extends ShardNumber {
  readonly lease: LeaseView;
}

/** All shards of a singleton that have a lease, of any number of shards. */
export const shardsIn = (name: string, leases: readonly LeaseView[]): SeenShard[] =>
  leases.flatMap((lease) => {
    const shard = shardIn(name, lease.name);
    return shard === undefined ? [] : [{ ...shard, lease }];
  });

/** What one poll found, for one replica. */
export interface Distribution {
  /** Owners that are alive, this replica included. */
  readonly live: ReadonlySet<string>;
  /** The most shards that each should have, and the least. */
  readonly fair: number;
  readonly low: number;
  /** Shards that any replica may take now. */
  readonly free: readonly number[];
  /** How many shards the other live replicas lack to have `low` each. */
  readonly hunger: number;
  /** Another live replica has more than `fair`, and will shed some. */
  readonly isOverfull: boolean;
}

/**
 * Who should have how many shards. A wrong list of live replicas makes it uneven, never double: the leases decide who
 * holds a shard.
 */
export function distributionOf(
  of: number,
  own: string,
  shards: readonly SeenShard[],
  reported: readonly string[],
  dead: { has(owner: string): boolean },
): Distribution {
  const held = new Map<string, number>();
  const taken = new Set<number>();
  for (const { index, lease } of shards) {
    if (lease.paused || lease.state === "DOOMED") taken.add(index);
    if (lease.state !== "HELD" || lease.owner === null) continue;
    taken.add(index);
    held.set(lease.owner, (held.get(lease.owner) ?? 0) + 1);
  }
  const holders = [...held.keys()].filter((owner) => !dead.has(owner));
  const live = new Set([own, ...holders, ...reported.filter((owner) => !dead.has(owner))]);
  const [low, fair] = [Math.floor(of / live.size), Math.ceil(of / live.size)];
  return {
    live,
    fair,
    low,
    free: inOrderOf(own, of).filter((index) => !taken.has(index)),
    isOverfull: [...held].some(([owner, count]) => owner !== own && count > fair),
    hunger: [...live].reduce((sum, one) => sum + (one === own ? 0 : Math.max(0, low - (held.get(one) ?? 0))), 0),
  };
}

/**
 * How many shards this replica takes at once: up to `low` in any case, and up to its share of what the hungry ones
 * leave. A shard that it took from them would be shed again.
 */
export function wantedNow({ fair, low, hunger }: Distribution, held: number, free: number): number {
  return Math.max(low - held, Math.min(fair - held, free - hunger));
}

/** Each replica begins elsewhere, so that they rarely try for the same shard. */
function inOrderOf(own: string, of: number): number[] {
  const first = fnv1a(own) % of;
  return Array.from({ length: of }, (_, k) => (first + k) % of);
}

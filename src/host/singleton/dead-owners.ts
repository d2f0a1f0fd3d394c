import type { SeenShard } from "./distribution.ts";

/** What a poll saw of a shard that has an owner. */
interface Sight {
  readonly owner: string;
  readonly token: bigint;
  readonly renewals: number;
  readonly isExpired: boolean;
}

/**
 * Owners that lost a shard because it expired: they are dead now, although their report is listed for a minute, and
 * other shards of theirs expire later. One that only stood still is alive again once it renews or acquires a shard, or
 * reports. A replica that joins later has not seen them die, and would count them; so their reports are removed.
 */
export class DeadOwners {
  readonly #seen = new Map<number, Sight>();
  /** With the time of the last report that was known when its shard expired. */
  readonly #dead = new Map<string, number>();

  /** Learns from one poll: the shards, and when each owner has reported last. */
  note(shards: readonly SeenShard[], reportedAt: ReadonlyMap<string, number>): void {
    for (const [owner, before] of this.#dead) if ((reportedAt.get(owner) ?? before) > before) this.#dead.delete(owner);
    const died = new Set<string>();
    for (const { index, lease } of shards) {
      const { owner, token, renewals, state, reason } = lease;
      if (owner === null) continue; // it was released, whatever the reason of its last term
      const last = this.#seen.get(index);
      const isTakenOver = last !== undefined && token > last.token && owner !== last.owner && reason === "timeout";
      if (isTakenOver && !last.isExpired) died.add(last.owner);
      const isExpired = state === "EXPIRED";
      const isSame =
        last?.owner === owner && last.token === token && last.renewals === renewals && last.isExpired === isExpired;
      if (isExpired && !isSame) died.add(owner);
      if (state === "HELD" && !isSame) this.#dead.delete(owner);
      this.#seen.set(index, { owner, token, renewals, isExpired });
    }
    for (const owner of died) this.#dead.set(owner, reportedAt.get(owner) ?? Number.NEGATIVE_INFINITY);
  }

  has(owner: string): boolean {
    return this.#dead.has(owner);
  }
}

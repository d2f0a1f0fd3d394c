import type { SeenShard } from "./distribution.ts";

/**
 * Owners that lost a shard because it expired: they are dead now, although their report is listed for a minute. One that
 * only stood still is alive again once it holds a shard or reports. A replica that joins later has not seen them die,
 * and would count them; so their reports are removed.
 */
export class DeadOwners {
  readonly #lastOwner = new Map<number, { readonly owner: string; readonly token: bigint }>();
  /** With the time of the last report that was known when its shard expired. */
  readonly #dead = new Map<string, number>();

  /** Learns from one poll: the shards, and when each owner has reported last. */
  note(shards: readonly SeenShard[], reportedAt: ReadonlyMap<string, number>): void {
    const add = (owner: string): void => {
      if (!this.#dead.has(owner)) this.#dead.set(owner, reportedAt.get(owner) ?? Number.NEGATIVE_INFINITY);
    };
    for (const [owner, before] of this.#dead) if ((reportedAt.get(owner) ?? before) > before) this.#dead.delete(owner);
    for (const { index, lease } of shards) {
      const { owner, token, state, reason } = lease;
      const last = this.#lastOwner.get(index);
      const isTakenOver = last !== undefined && token > last.token && owner !== last.owner && reason === "timeout";
      if (isTakenOver) add(last.owner);
      if (owner === null) continue;
      if (state === "EXPIRED") add(owner);
      this.#lastOwner.set(index, { owner, token });
    }
    for (const { lease } of shards) if (lease.state === "HELD" && lease.owner !== null) this.#dead.delete(lease.owner);
  }

  /** The dead ones among the owners that are listed: their reports are to be removed. */
  among(reported: Iterable<string>): string[] {
    return [...reported].filter((owner) => this.has(owner));
  }

  has(owner: string): boolean {
    return this.#dead.has(owner);
  }
}

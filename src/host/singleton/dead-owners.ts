import type { SeenShard } from "./distribution.ts";

/** Owners that lost a shard because it expired: they are dead now, although their report is listed for a minute. */
export class DeadOwners {
  readonly #lastOwner = new Map<number, { readonly owner: string; readonly token: bigint }>();
  readonly #dead = new Set<string>();

  /** Learns from one poll. An owner that holds a shard again is alive. */
  note(shards: readonly SeenShard[]): void {
    for (const { index, lease } of shards) {
      const { owner, token, state, reason } = lease;
      const last = this.#lastOwner.get(index);
      const isTakenOver = last !== undefined && token > last.token && owner !== last.owner && reason === "timeout";
      if (isTakenOver) this.#dead.add(last.owner);
      if (owner === null) continue;
      if (state === "EXPIRED") this.#dead.add(owner);
      this.#lastOwner.set(index, { owner, token });
    }
    for (const { lease } of shards) if (lease.state === "HELD" && lease.owner !== null) this.#dead.delete(lease.owner);
  }

  has(owner: string): boolean {
    return this.#dead.has(owner);
  }
}

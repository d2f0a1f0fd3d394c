import { createHash } from "node:crypto";

/** Says which shard has a tenant. */
export interface Directory {
  /** The number of the tenant's shard. A tenant without one gets it here, and keeps it. */
  locate(tenant: string): Promise<number>;
  /**
   * Whether a read of this shard was a read of the tenant's shard. Called after the read: false if the tenant has moved
   * since it was located.
   */
  confirm(tenant: string, shard: number): Promise<boolean>;
  /** The shard refused the tenant. Resolves when another try may succeed. */
  refused(tenant: string, shard: number): Promise<void>;
  /** Grows with every move: a cursor of all tenants is valid for one value. */
  moves(): Promise<number>;
  close(): void;
}

/** The choice for a new tenant among the shards that accept some. */
export function chosenShard(tenant: string, accepting: readonly number[]): number {
  const hash = createHash("sha256").update(tenant).digest().readUIntBE(0, 6);
  return accepting[hash % accepting.length]!;
}

/** A directory without moves: every tenant is where its hash says. For shards that no process adds to. */
export function hashDirectory(shards: number): Directory {
  const all = Array.from({ length: shards }, (_, k) => k);
  return {
    locate: async (tenant) => chosenShard(tenant, all),
    confirm: async () => true,
    refused: async () => {},
    moves: async () => 0,
    close: () => {},
  };
}

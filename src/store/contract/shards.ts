import type { AuditInfo } from "./admin.ts";

/** Several databases behind one store, called as `store.shards.x`. Absent where there is one. */
export interface ShardOps {
  /** By number. A shard that cannot be reached is listed without its tenants. */
  list(): Promise<ShardView[]>;
  /** Tenants whose move has not ended: a process carries it out, or it was interrupted and must be repeated. */
  moves(): Promise<ShardMove[]>;
  /**
   * Moves a tenant to another shard and resolves when that serves it. The tenant is paused while its rows are copied: no
   * run of it can start, and every term is over. Repeating an interrupted move completes it. Recorded in the tenant's
   * audit log.
   */
  move(tenant: string, to: string, audit: AuditInfo): Promise<MovedTenant>;
  /** Gives up a move that has not taken effect. false: there is none. TAPE_SHARD_REFUSED if it can only be completed. */
  cancelMove(tenant: string, audit: AuditInfo): Promise<boolean>;
  /** Whether new tenants may come to this shard. */
  setOpen(shard: string, open: boolean, audit: AuditInfo): Promise<ShardView>;
}

export interface ShardView {
  readonly number: number;
  readonly name: string;
  /** JOINING: its database is not prepared yet. CLOSED: no new tenant comes here. */
  readonly state: "JOINING" | "OPEN" | "CLOSED";
  /** At most 10 000 are counted; absent: the shard cannot be reached. */
  readonly tenants?: number;
  /** Why it cannot be reached, as far as this process knows. */
  readonly down?: string;
}

export interface ShardMove {
  readonly tenant: string;
  readonly from: string;
  readonly to: string;
  /** COPYING: it can still be cancelled. CLEARING: the new shard has the tenant, and the old rows are deleted. */
  readonly phase: "COPYING" | "CLEARING";
  readonly by: string;
  readonly reason: string;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** The result of a move. */
export interface MovedTenant {
  readonly tenant: string;
  /** false: it was there already. */
  readonly moved: boolean;
  /** How many rows this call has copied; 0 if it has only completed an earlier one. */
  readonly rows: number;
  /** How long the tenant was paused. */
  readonly pausedMs: number;
}

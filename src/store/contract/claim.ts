import type { AcquireRequest, AcquireResult, Claimant, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { AdminLeaseOps } from "./admin.ts";

/** Who may try: leases and their terms. */
export interface ClaimOps extends AdminLeaseOps {
  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult>;
  find(request: FindRequest): Promise<Term[]>;
  /**
   * All leases of a process in one call, a result for each. TAPE_FENCED and TAPE_LEASE_STALLED end a term; any other
   * code (its row was locked, its response lost) says nothing about the lease, and the renewal may be repeated.
   */
  renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]>;
}

/** A request for work that is due: for which reactor, tenant and workflows, and how much. */
export interface FindRequest {
  readonly claimant: Claimant;
  /** Journals that wait for this reactor. */
  readonly nextReactor: string;
  /** Journals whose stale holder was one of these reactors. */
  readonly staleOf: readonly string[];
  /** Maximum of those whose holder is stale; absent: as many as `limit` allows. */
  readonly staleLimit?: number;
  readonly limit: number;
  /** One nonce for the whole find: repeating it returns the same terms. */
  readonly nonce: bigint;
  /** Only this tenant's. */
  readonly tenant?: string;
  /** Only runs of these workflows: the others are left to processes that serve them. */
  readonly workflows?: readonly string[];
  /** Only items, for reactors that work on effects: no queue of runs is read. */
  readonly kind?: "item";
  /** Only for items: none is claimed whose callee has no capacity left here. It stays free for other processes. */
  readonly share?: Share;
  /**
   * Also claim up to `limit` parked runs whose timer fires within `withinMs`, so that they are already replayed when it
   * does.
   */
  readonly preload?: { readonly withinMs: number; readonly limit: number };
}

/** Capacity by callee, see {@link Term.callee}: one that hangs occupies no more than this. */
export interface Share {
  /** Items of one callee at a time. */
  readonly max: number;
  /** How many the claimant works on already. */
  readonly busy: readonly { readonly callee: string; readonly items: number }[];
}

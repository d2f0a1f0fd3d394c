import type { BuildClaim } from "../../model/build.ts";
import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, AcquireResult, Claimant, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { AdminLeaseOps } from "./admin.ts";

/** The right to try: leases and their terms. */
export interface ClaimOps extends AdminLeaseOps {
  /** Acquires one lease under a condition. */
  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult>;
  /** Finds due work of a reactor and acquires its leases. */
  find(request: FindRequest): Promise<Term[]>;
  /**
   * Renews all leases of a process in one call, with a result for each. TAPE_FENCED and TAPE_LEASE_STALLED end a term.
   * Any other code (a locked row, a lost response) says nothing about the lease, and the renewal may be retried.
   */
  renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]>;
  /** The secret of the run's callbacks, for the holder of its lease: it computes their tokens. Rarely needed. */
  callbackSecret(fence: Fence): Promise<string>;
}

/** A request for due work: for which reactor, tenant and workflows, and how much. */
export interface FindRequest {
  readonly claimant: Claimant;
  /** Journals that wait for this reactor. */
  readonly nextReactor: string;
  /** Journals whose stale holder was one of these reactors. */
  readonly staleOf: readonly string[];
  /** Maximum number of journals with a stale holder; absent: up to `limit`. */
  readonly staleLimit?: number;
  readonly limit: number;
  /** One nonce for the whole find: repeating it returns the same terms. */
  readonly nonce: bigint;
  /** Only journals of this tenant. */
  readonly tenant?: string;
  /** Only runs of these workflows; the others are left to processes that serve them. */
  readonly workflows?: readonly string[];
  /** Only items, for reactors that work on effects: no backlog of runs is read. */
  readonly kind?: "item";
  /** Items only: none is claimed whose callee has no capacity left here. It stays free for other processes. */
  readonly share?: Share;
  /**
   * Also claim up to `limit` parked runs whose timer fires within `withinMs`, so that they are already replayed when it
   * does.
   */
  readonly preload?: { readonly withinMs: number; readonly limit: number };
  /**
   * Also admit runs of these queues, after everything else: each gets a slot and its term in one transaction. `room`:
   * how many more runs of the queue this process drives; with 0 it takes over none of them either. Requires a tenant.
   */
  readonly queues?: readonly QueueRoom[];
  /** Also runs that are pinned to this build. Without it: only runs without a pin. */
  readonly build?: BuildClaim;
  /** Only admit runs of the queues: nothing else has become due since the last find. */
  readonly only?: "queues";
}

/** A queue from which to admit runs. */
export interface QueueRoom {
  readonly name: string;
  /** How many of its runs fit. */
  readonly room: number;
}

/** Capacity per callee, see {@link Term.callee}: a callee that hangs occupies no more than this. */
export interface Share {
  /** Items of one callee at a time. */
  readonly max: number;
  /** How many the claimant is working on already. */
  readonly busy: readonly { readonly callee: string; readonly items: number }[];
}

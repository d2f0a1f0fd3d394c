import type { Limits } from "../../model/limits.ts";
import type { ClaimOps } from "./claim.ts";
import type { FencedOps } from "./fenced.ts";
import type { IntakeOps } from "./intake.ts";
import type { ReadOps } from "./read.ts";

export type {
  AdminLeaseOps,
  AdminReadOps,
  AdminWriteOps,
  ApiToken,
  AuditInfo,
  NewToken,
  OperatorReason,
  ProcessReport,
  ProcessView,
  StoreSettings,
} from "./admin.ts";
export type { ClaimOps, FindRequest, Share } from "./claim.ts";
export type { AppendRequest, AppendResult, FencedOps } from "./fenced.ts";
export type { CreateResult, IntakeOps, RunSpec, ValueCondition } from "./intake.ts";
export type {
  AuditEntry,
  BudgetSummary,
  EffectFilter,
  GateFilter,
  ListOps,
  Page,
  RunFilter,
  RunRate,
  RunView,
  StoredValue,
} from "./list.ts";
export type { AgendaItem, DueTimer, FeedPage, FeedRecord, ReadOps, RunProgress, UnservedWorkflow } from "./read.ts";

/**
 * The store contract, in four groups. A store is correct when it passes the conformance suite (testkit).
 *
 *   intake   writes that need no lease, each one conditional transaction: create, note, value, timer, schedule
 *   claim    who may try: acquire, find work, renew, take over
 *   fenced   whose writes count: the only way in which records enter a journal
 *   read     reads for everyone, at any time
 *
 * Lists for operators (list.ts) are part of `read`. Operating the store (admin.ts: schedules, tokens, quotas, process
 * reports, pausing, restoring) is spread over `intake`, `claim` and `read` by what it takes.
 *
 * Calls that name a run or a lease take the tenant first; another tenant's name answers like an absent one. Refusals are
 * TapeErrors: thrown by single calls, one result per item in batches.
 */
export interface Store {
  readonly backend: "sqlite" | "postgres";
  readonly limits: Limits;
  /** No guarded transaction of this store outlives this many milliseconds; a TTL must be longer. */
  readonly transactionBoundMs: number;
  /** true where this process provably is the only one: a singleton may then lead without standing by. */
  readonly exclusive: boolean;
  readonly intake: IntakeOps;
  readonly claim: ClaimOps;
  readonly fenced: FencedOps;
  readonly read: ReadOps;
  /**
   * The same writes, each at most once for this key: a repeat gets the result of the first, also from another process,
   * and writes nothing; with another hash it is refused with TAPE_KEY_REUSED. A refusal is not remembered, except
   * TAPE_VERSION_CONFLICT; of a batch of runs the results are, unless all were refused. Runs that are created with a
   * first term are named by its nonce instead.
   */
  once(key: IdempotencyKey): IntakeOps;
  /** Queries the store itself, which also shows whether it answers. */
  health(): Promise<StoreHealth>;
  /** Hints that there may be work; lossy and coalesced, polling is always the fallback. */
  onWake(listener: (wake: WakeHint) => void): () => void;
  close(): Promise<void>;
}

/** Names a call that may be sent again. Kept for a day. */
export interface IdempotencyKey {
  readonly tenant: string;
  readonly key: string;
  /** Of all arguments of the call. */
  readonly hash: string;
}

/** What slows a store down, where it can name it. */
export interface StoreHealth {
  /** The transaction that holds the feed back for more than a second, where the store can name it. */
  readonly feedBlockedBy?: string;
}

/** A lossy notification to check again; polling finds everything that a lost hint would have announced. */
export type WakeHint =
  /** Tenant and, of a run, workflow are present where they were known: the hint concerns no others. */
  | { readonly of: "reactor"; readonly reactor: string; readonly tenant?: string; readonly workflow?: string }
  | { readonly of: "value"; readonly tenant: string; readonly key: string }
  /** A note arrived, a term ended, a run ended: its lease may be free. */
  | { readonly of: "journal"; readonly tenant: string; readonly journal: number }
  /** Another process wrote something: a store without notifications knows no more. */
  | { readonly of: "any" };

import type { Limits } from "../../model/limits.ts";
import type { ClaimOps } from "./claim.ts";
import type { FencedOps } from "./fenced.ts";
import type { IntakeOps } from "./intake.ts";
import type { ReadOps } from "./read.ts";
import type { RetentionOps } from "./retention.ts";
import type { ShardOps } from "./shards.ts";
import type { TransactionOps } from "./transaction.ts";

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
  ScheduleAudit,
  StoreSettings,
} from "./admin.ts";
export type { BlobChunk, BlobPart, BlobReadOps, BlobWriteOps } from "./blobs.ts";
export type { BuildReadOps, BuildView, BuildWriteOps, PinnedRun } from "./builds.ts";
export { type Census, type CensusOps, type InDoubtCount, maxCounted, type ReactorBacklog } from "./census.ts";
export type { ClaimOps, FindRequest, QueueRoom, Share } from "./claim.ts";
export type { EraseStep, EraseStepRequest, ErasureOps } from "./erasure.ts";
export type {
  CheckpointOps,
  EventReadOps,
  EventWriteOps,
  SinkRow,
  Subject,
  SubjectRun,
} from "./events.ts";
export type { AppendRequest, AppendResult, FencedOps } from "./fenced.ts";
export type { CreateResult, Debounce, IntakeOps, RunSpec, UniqueKey, ValueCondition } from "./intake.ts";
export type {
  AuditEntry,
  BudgetSummary,
  EffectFilter,
  GateFilter,
  LabelFilter,
  LeaseFilter,
  ListOps,
  Page,
  RunFilter,
  RunRate,
  RunView,
  StoredValue,
} from "./list.ts";
export type {
  PartitionView,
  PauseView,
  QueueDefined,
  QueuePosition,
  QueueReadOps,
  QueueView,
  QueueWriteOps,
  SlotFilter,
  SlotView,
} from "./queues.ts";
export type { AgendaItem, DueTimer, FeedPage, FeedRecord, ReadOps, RunProgress, UnservedWorkflow } from "./read.ts";
export type {
  ArchivedFile,
  ArchivedRun,
  DueTree,
  RetentionOps,
  RetentionReadOps,
  RetentionView,
  RetentionWriteOps,
} from "./retention.ts";
export type { MovedTenant, ShardMove, ShardOps, ShardView } from "./shards.ts";
export type {
  Chunk,
  ChunkAppend,
  ChunkPage,
  ChunkRequest,
  NewChunk,
  StreamAccess,
  StreamAppend,
  StreamPart,
  StreamReadOps,
  StreamToken,
  StreamTokenOps,
  StreamView,
  StreamWriteOps,
} from "./streams.ts";
export type { CallbackBody, PublishedValue, Reply, StartSignal, TalkReadOps, TalkWriteOps } from "./talk.ts";
export type { StepTransaction, TransactionOps } from "./transaction.ts";

/**
 * The store contract, in groups. A store is correct when it passes the conformance suite (testkit).
 *
 *   intake   writes that need no lease, each one conditional transaction: create, note, value, timer, schedule
 *   claim    the right to try: acquire, find work, renew, take over
 *   fenced   writes under a fence: the only way in which records enter a journal
 *   read     reads, at any time
 *   retention  archiving and deleting ended runs, under the fence of one named lease
 *   within   some of these inside a transaction of the caller, where the caller can have one
 *
 * Lists for operators (list.ts) are part of `read`. Administration (admin.ts: schedules, tokens, quotas, process
 * reports, pausing, restoring) is spread over `intake`, `claim` and `read` by the kind of call.
 *
 * Calls that name a run or a lease take the tenant first. Another tenant's name gives the same result as an absent one.
 * Rejections are TapeErrors: thrown by single calls, one result per item in batches.
 */
export interface Store {
  /** The kind of database. */
  readonly backend: "sqlite" | "postgres" | "spanner";
  /** The bounds in effect. */
  readonly limits: Limits;
  /** No guarded transaction of this store outlives this many milliseconds; a TTL must be longer. */
  readonly transactionBoundMs: number;
  /** true if this process is provably the only one: a singleton may then lead without standing by. */
  readonly exclusive: boolean;
  readonly intake: IntakeOps;
  readonly claim: ClaimOps;
  readonly fenced: FencedOps;
  readonly read: ReadOps;
  /** Absent where no connection of this process can lead to the store's database: behind a server. */
  readonly within?: TransactionOps;
  /** Absent behind a server, which runs the reactor `retention` itself. */
  readonly retention?: RetentionOps;
  /** Of a store of several shards whose tenants can move. */
  readonly shards?: ShardOps;
  /**
   * The same writes, each at most once for this key. A repeat returns the result of the first call, also in another
   * process, and writes nothing; with another hash it is rejected with TAPE_KEY_REUSED. A rejection is not stored,
   * except TAPE_VERSION_CONFLICT; the results of a batch of runs are, unless all were rejected. Runs created with a
   * first term are identified by its nonce instead.
   */
  once(key: IdempotencyKey): IntakeOps;
  /** Queries the store itself, which also shows whether it responds. */
  health(): Promise<StoreHealth>;
  /** Hints that there may be work. Lossy and coalesced: polling is always the fallback. */
  onWake(listener: (wake: WakeHint) => void): () => void;
  /** Closes its connections. */
  close(): Promise<void>;
}

/** Names a call that may be repeated. Kept for a day. */
export interface IdempotencyKey {
  readonly tenant: string;
  /** The name of the call that may be repeated. */
  readonly key: string;
  /** Over all arguments of the call. */
  readonly hash: string;
}

/** What slows the store down, if it can name it. */
export interface StoreHealth {
  /** The transaction that has held the feed back for more than a second, if the store can name it. */
  readonly feedBlockedBy?: string;
  /** Shards that this process cannot reach. Their tenants wait; all others are served. */
  readonly shardsDown?: readonly ShardDown[];
}

/** A shard that cannot be reached, why, and for how long. */
export interface ShardDown {
  readonly name: string;
  readonly why: string;
  readonly forMs: number;
}

/** A lossy notification to check again. Polling finds everything that a lost hint would have announced. */
export type WakeHint =
  /** Tenant and, for a run, workflow are present if known: then the hint concerns no others. */
  | { readonly of: "reactor"; readonly reactor: string; readonly tenant?: string; readonly workflow?: string }
  | { readonly of: "value"; readonly tenant: string; readonly key: string }
  /** A note arrived, a term ended, a run ended: its lease may be free. */
  | { readonly of: "journal"; readonly tenant: string; readonly journal: number }
  /** The run published a value or sent a reply. */
  | { readonly of: "published"; readonly tenant: string; readonly journal: number }
  /** These runs streamed chunks. */
  | { readonly of: "stream"; readonly tenant: string; readonly journals: number[] }
  /** Another process wrote something; a store without notifications knows no more. */
  | { readonly of: "any" };

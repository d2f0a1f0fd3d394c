import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, AcquireResult, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { JournalRecord, RecordData } from "../../model/records.ts";
import type {
  AppendResult,
  AuditEntry,
  CreateResult,
  FeedPage,
  FindRequest,
  Page,
  StepTransaction,
  Store,
  StoreHealth,
  StoreSettings,
  WakeHint,
} from "../contract/store.ts";
import type { CheckedEntry } from "../validate/entry.ts";
import type { CheckedChunks } from "../validate/streams.ts";
import type { Plan, PlanContext } from "./plan.ts";
import type { ClaimRequest } from "./plans/claim.ts";
import type { FirstTerm } from "./plans/create.ts";
import type { TimerRef } from "./plans/intake.ts";

/** Writes inside a transaction that the caller has opened on its own connection to the same database. */
export interface CallerTransactions {
  /** Before a run is created: does on another connection what would lock rows of other tenants for too long. */
  prepare?(tenant: string): Promise<void>;
  /**
   * Runs the plan there: entirely, or not at all if it throws. `numbers`: how many journal numbers it may need. It sends
   * wake hints with the caller's commit, as far as the database can.
   */
  run<T>(transaction: unknown, make: (context: PlanContext) => Plan<T>, numbers: number): Promise<T>;
  step(source: unknown, body: (client: unknown) => unknown): StepTransaction;
}

/** What an SQL backend must provide. Everything else of the contract is shared (assemble.ts and plans/). */
export interface SqlBackend {
  readonly backend: Store["backend"];
  readonly limits: Limits;
  readonly transactionBoundMs: number;
  readonly exclusive: boolean;
  /**
   * One transaction. Its outcome is known, or TAPE_OUTCOME_UNKNOWN is thrown; a lost response has been resolved.
   * `tenant`: whose turn it uses if several wait; absent: one of the store's own.
   */
  write<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T>;
  /**
   * Writes whose repetition changes nothing, each on its own: a lost response is simply repeated, so they need neither a
   * transaction nor proof of its commit.
   */
  writeRepeatable<T>(make: () => Plan<T>, tenant?: string): Promise<T>;
  /** One transaction that pre-empts a live holder (`lease.take`): it must not starve behind guarded ones. */
  preempt<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T>;
  /** Statements that change nothing, outside a transaction; `tenant` as in `write`. */
  read<T>(plan: Plan<T>, tenant: string | undefined): Promise<T>;
  /** Reads a journal from its first record, together with others if that is cheaper. Absent: like any read. */
  journal?(tenant: string, journal: number): Promise<Page<JournalRecord>>;
  /** Most of the load; backends batch it. */
  append(fence: Fence, entry: CheckedEntry): Promise<AppendResult>;
  /** Chunks of one run, together with those of others if that is cheaper; never in the way of records. */
  appendChunks(fence: Fence, chunks: CheckedChunks): Promise<object>;
  create(tenant: string, data: RecordData<"run.created">, first: FirstTerm | undefined): Promise<CreateResult>;
  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult>;
  /** Claims those that are still available; the others do no harm. */
  take(journals: readonly number[], request: ClaimRequest): Promise<Term[]>;
  /** Gives up to `room` free slots of a queue to waiting runs, with a term each. */
  admit(queue: string, room: number, request: FindRequest): Promise<Term[]>;
  /** Fires one timer, together with others if that is cheaper. Absent: like any write. */
  fire?(timer: TimerRef): Promise<boolean>;
  renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]>;
  /** Absent: callers have no transaction that a plan could join. */
  readonly callers?: CallerTransactions;
  /** How many numbers, separated by dots, name a position in the feed. */
  readonly feedParts: 1 | 3;
  feed(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage>;
  /** The position behind the last record that the feed can return. */
  frontier(tenant: string | undefined): Promise<string>;
  audit(before: string | undefined, limit: number, tenant: string | undefined): Promise<AuditEntry[]>;
  settings(): Promise<StoreSettings>;
  health(): Promise<StoreHealth>;
  onWake(listener: (wake: WakeHint) => void): () => void;
  close(): Promise<void>;
}

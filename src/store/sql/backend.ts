import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, AcquireResult, RenewRequest, RenewResult, Term } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { RecordData } from "../../model/records.ts";
import type {
  AppendResult,
  AuditEntry,
  CreateResult,
  FeedPage,
  FindRequest,
  Store,
  StoreHealth,
  StoreSettings,
  WakeHint,
} from "../contract/store.ts";
import type { CheckedEntry } from "../validate/entry.ts";
import type { Plan, PlanContext } from "./plan.ts";
import type { FirstTerm } from "./plans/create.ts";
import type { TimerRef } from "./plans/intake.ts";

/** What an SQL backend must be able to do. Everything else of the contract is shared (assemble.ts and plans/). */
export interface SqlBackend {
  readonly backend: Store["backend"];
  readonly limits: Limits;
  readonly transactionBoundMs: number;
  readonly exclusive: boolean;
  /**
   * One transaction. The answer is known or TAPE_OUTCOME_UNKNOWN; a lost one has been resolved. `tenant`: in whose turn,
   * where several wait; absent: in one of the store's own.
   */
  write<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T>;
  /** One transaction that pre-empts a live holder (`lease.take`): it must not starve behind guarded ones. */
  preempt<T>(make: (context: PlanContext) => Plan<T>, tenant?: string): Promise<T>;
  /** Statements that change nothing, outside a transaction; `tenant` as in `write`. */
  read<T>(plan: Plan<T>, tenant: string | undefined): Promise<T>;
  /** The hot path. */
  append(fence: Fence, entry: CheckedEntry): Promise<AppendResult>;
  create(tenant: string, data: RecordData<"run.created">, first: FirstTerm | undefined): Promise<CreateResult>;
  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult>;
  /** Of those that were found, whatever is still to be had: one that is not harms no other. */
  take(journals: readonly number[], request: FindRequest): Promise<Term[]>;
  /** One timer, together with others where that is cheaper; absent: as any write. */
  fire?(timer: TimerRef): Promise<boolean>;
  renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]>;
  /** How many numbers, with dots between them, name a place in the feed. */
  readonly feedParts: 1 | 3;
  feed(cursor: string | undefined, limit: number, tenant: string | undefined): Promise<FeedPage>;
  audit(before: string | undefined, limit: number, tenant: string | undefined): Promise<AuditEntry[]>;
  settings(): Promise<StoreSettings>;
  health(): Promise<StoreHealth>;
  onWake(listener: (wake: WakeHint) => void): () => void;
  close(): Promise<void>;
}

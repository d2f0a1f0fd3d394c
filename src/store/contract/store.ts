import type { Fence } from "../../model/fence.ts";
import type {
  AcquireRequest,
  AcquireResult,
  Claimant,
  ItemResult,
  LeaseTarget,
  LeaseView,
  RenewRequest,
  RenewResult,
  Term,
  TermView,
} from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import type { Quota, QuotaLimits } from "../../model/quota.ts";
import type { Credential, ForkData, JournalRecord, NewRecord } from "../../model/records.ts";
import type { BudgetRow, BusinessKeyRow, EffectRow, GateRow, ScheduleRow, TimerRow } from "../../model/rows.ts";
import type { ApiToken, AuditEntry, AuditInfo, NewToken } from "./access.ts";
import type {
  BudgetSummary,
  EffectFilter,
  GateFilter,
  ProcessReport,
  ProcessView,
  RunFilter,
  RunRate,
  StoreSettings,
} from "./filters.ts";
import type { AgendaItem, FeedPage, Page, RunProgress, RunView, UnservedWorkflow } from "./views.ts";

export type { ApiToken, AuditEntry, AuditInfo, NewToken } from "./access.ts";
export type {
  BudgetSummary,
  EffectFilter,
  GateFilter,
  ProcessReport,
  ProcessView,
  RunFilter,
  RunRate,
  StoreSettings,
} from "./filters.ts";
export type { AgendaItem, FeedPage, FeedRecord, Page, RunProgress, RunView, UnservedWorkflow } from "./views.ts";

/**
 * The store contract, in four groups. A store is correct when it passes the conformance suite (testkit).
 *
 *   intake   writes that need no lease, each one conditional transaction: create, note, value, timer, schedule
 *   claim    who may try: acquire, find work, renew, take over
 *   fenced   whose writes count: the only door through which records enter a journal
 *   read     anybody, any time
 *
 * Calls that name a run or a lease take the tenant first; another tenant's name answers like an absent one. Refusals are
 * TapeErrors: thrown by single calls, one verdict each in batches.
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
   * The same writes, each at most once for this key: a repeat gets the answer of the first, also from another process,
   * and writes nothing; with another hash it is refused with TAPE_KEY_REUSED. A refusal is not remembered, but for
   * TAPE_VERSION_CONFLICT; of a batch of runs the verdicts are, unless all were refused. Runs that are created with a
   * first term are named by its nonce instead.
   */
  once(key: IdempotencyKey): IntakeOps;
  /** Asks the store itself, so that it is also known whether it answers. */
  health(): Promise<StoreHealth>;
  /** Hints that something may be worth a look; lossy and coalesced, polling is always the fallback. */
  onWake(listener: (wake: WakeHint) => void): () => void;
  close(): Promise<void>;
}

/** What names a call that may be sent again. Kept for a day. */
export interface IdempotencyKey {
  readonly tenant: string;
  readonly key: string;
  /** Of everything the call says. */
  readonly hash: string;
}

export interface StoreHealth {
  /** The transaction that holds the feed back for more than a second, where the store can name it. */
  readonly feedBlockedBy?: string;
}

export type WakeHint =
  /** Whose work it is, and of a run which workflow's, as far as that was known: it is no news to anybody else. */
  | { readonly of: "reactor"; readonly reactor: string; readonly tenant?: string; readonly workflow?: string }
  | { readonly of: "value"; readonly tenant: string; readonly key: string }
  /** A note arrived, a term ended, a run ended: its lease may be free. */
  | { readonly of: "journal"; readonly tenant: string; readonly journal: number }
  /** Somebody else wrote something: a store without notifications says no more. */
  | { readonly of: "any" };

export interface RunSpec {
  readonly id: string;
  readonly workflow: string;
  readonly version?: string;
  readonly input: unknown;
  readonly labels?: Readonly<Record<string, string>>;
  /** Caps in whole millionths of the unit. */
  readonly budget?: Readonly<Record<string, number>>;
  readonly schedule?: string;
  /** Who started it: `token:ID` or `name:NAME`. A server says so itself. */
  readonly starters?: string[];
  readonly forkedFrom?: string;
  readonly fork?: ForkData;
  /** The input has been through the workflow's schema: whoever drives the run need not ask again. */
  readonly checked?: true;
}

export interface CreateResult {
  readonly journal: number;
  /** false: the same run existed already. */
  readonly fresh: boolean;
  /** The first term, when it was asked for and the run is fresh. */
  readonly term?: Term;
}

export interface FindRequest {
  readonly claimant: Claimant;
  /** Journals that ask for this reactor. */
  readonly nextReactor: string;
  /** Journals whose stale holder was one of these reactors. */
  readonly staleOf: readonly string[];
  /** At most so many whose holder is stale; absent: as many as the limit allows. */
  readonly staleLimit?: number;
  readonly limit: number;
  /** One nonce for the whole find: repeating it returns the same terms. */
  readonly nonce: bigint;
  /** Only this tenant's. */
  readonly tenant?: string;
  /** Only runs of these workflows: what nobody here can drive is left to those who can. */
  readonly workflows?: readonly string[];
  /** Only items, for those who work on effects: no queue of runs is looked at. */
  readonly kind?: "item";
  /** Only for items: none is taken that its callee has no room for. It stays free, for whoever has. */
  readonly share?: Share;
  /**
   * Also so many runs that rest and whose next timer falls due within so long: who reads their journals before, has
   * nothing left to do when it fires but to go on.
   */
  readonly ahead?: { readonly withinMs: number; readonly limit: number };
}

/** Room by callee, see {@link Term.callee}: one that hangs takes no more places than this. */
export interface Share {
  /** Items of one callee at a time. */
  readonly most: number;
  /** How many the claimant has in hand already. */
  readonly busy: readonly { readonly callee: string; readonly items: number }[];
}

export type ValueCondition = "must_create" | "unconditional" | { readonly version: number };
export interface StoredValue {
  readonly key: string;
  readonly version: number;
  /** undefined together with deleted. */
  readonly value: unknown;
  readonly deleted: boolean;
  readonly at: number;
}

export interface DueTimer extends TimerRow {
  readonly lateMs: number;
}

export interface IntakeOps {
  createRuns(
    tenant: string,
    specs: readonly RunSpec[],
    first?: Claimant & { nonce: bigint },
  ): Promise<ItemResult<CreateResult>[]>;
  /** Sends a signal into the run's inbox. A repeated key is no error: it answers `duplicate`. */
  signal(
    tenant: string,
    run: string,
    signal: { name: string; value: unknown; key?: string; binds?: string; by?: string; via?: Credential },
  ): Promise<{ readonly n: number; readonly duplicate: boolean }>;
  /** Asks the run to stop. A repeated key sends no second note: it answers with the number of the first. */
  cancel(
    tenant: string,
    run: string,
    ask: { reason: string; by?: string; key?: string; via?: Credential },
  ): Promise<{ readonly n: number }>;
  /** A fenced-out owner's late answer. Needs token and nonce of the attempt; changes no verdict by itself. */
  leaveEvidence(
    tenant: string,
    attempt: { run: number; pos: number; sub?: number; token: bigint; nonce: bigint },
    evidence: { happened: boolean; value?: unknown; error?: unknown },
  ): Promise<{ readonly journal: number; readonly n: number }>;
  /** SET → FIRED and the note, in one transaction; true for the one caller that did it. Never early. */
  fireTimer(tenant: string, timer: { run: number; pos: number; purpose: string }): Promise<boolean>;
  putValue(tenant: string, key: string, value: unknown, when: ValueCondition): Promise<StoredValue>;
  deleteValue(tenant: string, key: string, version: number): Promise<StoredValue>;
  /** With `seen` only from the row as it was read (null: only if there is none), else TAPE_VERSION_CONFLICT. */
  putSchedule(
    tenant: string,
    row: Omit<ScheduleRow, "tenant" | "version">,
    seen?: Pick<ScheduleRow, "version" | "spec"> | null,
  ): Promise<ScheduleRow>;
  deleteSchedule(tenant: string, id: string): Promise<boolean>;
  /**
   * Advances the schedule from `version` and starts the runs of this firing, in one transaction; false: another did.
   * `spec` also rewrites it, and only if it still reads as `from`: a schedule deleted and made anew has versions anew.
   */
  fireSchedule(
    tenant: string,
    id: string,
    version: number,
    nextAt: number | null,
    runs: readonly RunSpec[],
    spec?: { readonly from: string; readonly to: string },
  ): Promise<boolean>;
  /**
   * Deletes finished runs that ended before `endedBefore`; their tombstones stay. Returns how many. Where a person did
   * it, `act` says who and why, for the audit.
   */
  prune(tenant: string, endedBefore: number, limit: number, act?: AuditInfo): Promise<number>;
  /**
   * What a tenant may have at most; undefined: every tenant that has no setting of its own. Only what is named changes:
   * null is the default's again, -1 no limit. Goes into the audit. The first limit for runs counts those that there are,
   * the first for bytes measures every record: that takes about a second for each million.
   */
  setQuota(tenant: string | undefined, change: Partial<QuotaLimits>, act: AuditInfo): Promise<Quota>;
  /** A token of the same id and hash is the same: it is made once. Its making goes into the audit. */
  putToken(token: NewToken, act: AuditInfo): Promise<ApiToken>;
  /** Goes into the audit once; TAPE_NOT_FOUND where there is none, or it is another tenant's. */
  revokeToken(tenant: string | undefined, id: string, act: AuditInfo): Promise<ApiToken>;
  /** Something that the audit should know and that changes nothing else: a refused call, a sign-in that failed. */
  recordAudit(tenant: string, action: string, act: AuditInfo, detail?: unknown): Promise<void>;
  /** It was used just now; remembered once a minute. */
  touchToken(id: string): Promise<void>;
  /** A process says what it is at, for people who look: no truth, and nothing may depend on it. */
  report(tenant: string, report: ProcessReport): Promise<void>;
  /** It goes; one that never reported may say so too. */
  unreport(tenant: string, owner: string): Promise<void>;
}

export interface ClaimOps {
  acquire(tenant: string, request: AcquireRequest): Promise<AcquireResult>;
  find(request: FindRequest): Promise<Term[]>;
  /**
   * All leases of a process in one call, a verdict for each. TAPE_FENCED and TAPE_LEASE_STALLED end a term; any other
   * code (its row was locked, its answer lost) says nothing about the lease, and the renewal may be repeated.
   */
  renew(renewals: readonly RenewRequest[]): Promise<RenewResult[]>;
  /** A paused lease can be held by nobody; its present holder is fenced at once. */
  pause(tenant: string, name: string, paused: boolean, by: string, why: string, via?: Credential): Promise<void>;
  /**
   * After a restore: raises the store epoch, so that no token is ever issued twice, and ends every term. With `by` it goes
   * into the audit, of the tenant `home`.
   */
  restored(
    reason: string,
    by?: string,
    via?: Credential,
    home?: string,
  ): Promise<{ readonly epoch: number; readonly ended: number }>;
}

export interface AppendRequest {
  /** The seq of the journal's last record as the writer knows it. */
  readonly after: number;
  readonly records: readonly NewRecord[];
}
export interface AppendResult {
  readonly head: number;
  /** Notes ever sent to this inbox: more than were taken means some wait. */
  readonly notes: number;
}

export interface FencedOps {
  append(fence: Fence, entry: AppendRequest): Promise<AppendResult>;
  /** Independent writes in one call: each with its own fence and its own verdict. */
  appendAll(batch: readonly (readonly [Fence, AppendRequest])[]): Promise<ItemResult<AppendResult>[]>;
}

export interface ReadOps {
  run(tenant: string, id: string): Promise<RunView | undefined>;
  runs(tenant: string, filter?: RunFilter): Promise<Page<RunView>>;
  /** How far the runs with these ids have come, in one look; those that do not exist are missing. */
  progress(tenant: string, ids: readonly string[]): Promise<RunProgress[]>;
  /** Records of one journal from `from` (default 1). `inbox` reads its notes instead. */
  journal(
    tenant: string,
    target: LeaseTarget,
    page?: { from?: number; limit?: number; inbox?: boolean },
  ): Promise<Page<JournalRecord>>;
  /** Those of one run or root come whole, or are refused with TAPE_TOO_LARGE. */
  effects(tenant: string, filter?: EffectFilter): Promise<Page<EffectRow>>;
  gates(tenant: string, filter?: GateFilter): Promise<Page<GateRow>>;
  timers(tenant: string, filter?: { run?: string; limit?: number }): Promise<TimerRow[]>;
  /** Timers whose time has come, of one tenant oldest first, of all of them in turn: the timers reactor's work. */
  dueTimers(limit: number, tenant?: string): Promise<DueTimer[]>;
  /**
   * When there is next something to do, for whom; of runs, only those of these workflows. One statement where tenant and
   * workflows are named: it is all that an idle process asks.
   */
  agenda(tenant?: string, workflows?: readonly string[]): Promise<AgendaItem[]>;
  /** Runs of other workflows than these that could have gone on for `minLagMs` and that nobody has taken. */
  unserved(workflows: readonly string[], minLagMs: number, tenant?: string): Promise<UnservedWorkflow[]>;
  /** By id, behind the one called `above`. */
  schedules(tenant: string, page?: { above?: string; limit?: number }): Promise<Page<ScheduleRow>>;
  dueSchedules(limit: number, tenant?: string): Promise<ScheduleRow[]>;
  budgets(tenant: string, run: string): Promise<BudgetRow[]>;
  /** Of all runs that have not ended: sums by unit, and the `limit` that are nearest to their caps. */
  spend(tenant: string, limit?: number): Promise<BudgetSummary>;
  /** `buckets` stretches of `sizeMs` from `since` on. Each is counted up to a bound, by the indexes of those times. */
  rate(tenant: string, since: number, sizeMs: number, buckets: number): Promise<RunRate[]>;
  claimOf(
    tenant: string,
    scope: string,
    businessKey: string,
  ): Promise<(BusinessKeyRow & { runId: string }) | undefined>;
  value(tenant: string, key: string): Promise<StoredValue | undefined>;
  /** By key, behind `above`. */
  values(tenant: string, prefix: string, limit?: number, above?: string): Promise<Page<StoredValue>>;
  /**
   * Versions after `after`, oldest first. TAPE_VALUE_COMPACTED when some are no longer kept. Those before a deletion are
   * erased with it: then the history begins with the deletion.
   */
  valueHistory(tenant: string, key: string, after: number, limit?: number): Promise<Page<StoredValue>>;
  lease(tenant: string, target: LeaseTarget): Promise<LeaseView | undefined>;
  leases(tenant: string, filter?: { held?: boolean; limit?: number }): Promise<LeaseView[]>;
  /** The ledger: every term, oldest first. */
  terms(tenant: string, target: LeaseTarget): Promise<TermView[]>;
  feed(cursor: string | undefined, limit?: number, tenant?: string): Promise<FeedPage>;
  /** What people did, newest first, in all tenants or in one. */
  audit(tenant: string | undefined, page?: { before?: string; limit?: number }): Promise<AuditEntry[]>;
  /** Of any tenant: whoever brings a credential does not say whose it is. */
  token(id: string): Promise<ApiToken | undefined>;
  /** Oldest first, behind the one with the id `above`. */
  tokens(tenant?: string, page?: { above?: string; limit?: number }): Promise<Page<ApiToken>>;
  /** What holds for this tenant, and how much of it is used. */
  quota(tenant: string): Promise<Quota>;
  /** Of all tenants that have a setting or were counted, by name behind `above`; the default, without a name, is first. */
  quotas(page?: { above?: string; limit?: number }): Promise<Page<Quota>>;
  /** Processes that reported within the last minute, by label. */
  processes(tenant: string): Promise<ProcessView[]>;
  settings(): Promise<StoreSettings>;
  /** Store time, milliseconds since 1970. */
  now(): Promise<number>;
}

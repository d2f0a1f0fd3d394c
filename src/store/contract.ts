import type { Fence } from "../model/fence.ts";
import type {
  Acquired,
  AcquireRequest,
  Claimant,
  LeaseView,
  Renewal,
  Renewed,
  Target,
  Term,
  TermView,
  Verdict,
} from "../model/lease.ts";
import type { Limits } from "../model/limits.ts";
import type { RunStatus } from "../model/machines.ts";
import type { JournalRecord, NewRecord } from "../model/records.ts";
import type { BudgetRow, ClaimRow, EffectRow, GateRow, ScheduleRow, TimerRow } from "../model/rows.ts";

/**
 * The store contract, in four groups. A store is correct when it passes the conformance suite (src/testing).
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
  readonly backend: "memory" | "sqlite" | "postgres";
  readonly limits: Limits;
  /** No guarded transaction of this store outlives this many milliseconds; a TTL must be longer. */
  readonly transactionBoundMs: number;
  /** true where this process provably is the only one: a singleton may then lead without standing by. */
  readonly exclusive: boolean;
  readonly intake: Intake;
  readonly claim: Claim;
  readonly fenced: Fenced;
  readonly read: Read;
  /** Hints that something may be worth a look; lossy and coalesced, polling is always the fallback. */
  onWake(listener: (wake: Wake) => void): () => void;
  close(): Promise<void>;
}

export type Wake =
  | { readonly of: "reactor"; readonly reactor: string }
  | { readonly of: "value"; readonly tenant: string; readonly key: string }
  /** A note arrived, a term ended, a run ended: its lease may be free. */
  | { readonly of: "journal"; readonly journal: number }
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
  readonly forkedFrom?: string;
}

export interface Created {
  readonly journal: number;
  /** false: the same run existed already. */
  readonly fresh: boolean;
  /** The first term, when it was asked for and the run is fresh. */
  readonly term?: Term;
}

export interface FindRequest {
  readonly claimant: Claimant;
  /** Journals that ask for this reactor. */
  readonly wants: string;
  /** Journals whose stale holder was one of these reactors. */
  readonly staleOf: readonly string[];
  /** At most so many whose holder is stale; absent: as many as the limit allows. */
  readonly staleLimit?: number;
  readonly limit: number;
  /** One nonce for the whole find: repeating it returns the same terms. */
  readonly nonce: bigint;
  /** Only this tenant's. */
  readonly tenant?: string;
}

export type ValueCondition = "must_create" | "unconditional" | { readonly version: number };
export interface Value {
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

export interface Intake {
  createRuns(
    tenant: string,
    specs: readonly RunSpec[],
    first?: Claimant & { nonce: bigint },
  ): Promise<Verdict<Created>[]>;
  /** Sends a signal into the run's inbox. A repeated key is no error: it answers `duplicate`. */
  signal(
    tenant: string,
    run: string,
    signal: { name: string; value: unknown; key?: string; binds?: string; by?: string },
  ): Promise<{ readonly n: number; readonly duplicate: boolean }>;
  cancel(tenant: string, run: string, ask: { reason: string; by?: string }): Promise<{ readonly n: number }>;
  /** A fenced-out owner's late answer. Needs token and nonce of the attempt; changes no verdict by itself. */
  leaveEvidence(
    attempt: { run: number; pos: number; sub?: number; token: bigint; nonce: bigint },
    evidence: { happened: boolean; value?: unknown; error?: unknown },
  ): Promise<{ readonly journal: number; readonly n: number }>;
  /** SET → FIRED and the note, in one transaction; true for the one caller that did it. Never early. */
  fireTimer(timer: { run: number; pos: number; purpose: string }): Promise<boolean>;
  putValue(tenant: string, key: string, value: unknown, when: ValueCondition): Promise<Value>;
  deleteValue(tenant: string, key: string, version: number): Promise<Value>;
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
  /** Deletes finished runs that ended before `endedBefore`; their tombstones stay. Returns how many. */
  prune(tenant: string, endedBefore: number, limit: number): Promise<number>;
}

export interface Claim {
  acquire(tenant: string, request: AcquireRequest): Promise<Acquired>;
  find(request: FindRequest): Promise<Term[]>;
  /**
   * All leases of a process in one call, a verdict for each. TAPE_FENCED and TAPE_LEASE_STALLED end a term; any other
   * code (its row was locked, its answer lost) says nothing about the lease, and the renewal may be repeated.
   */
  renew(renewals: readonly Renewal[]): Promise<Renewed[]>;
  /** A paused lease can be held by nobody; its present holder is fenced at once. */
  pause(tenant: string, name: string, paused: boolean, by: string, why: string): Promise<void>;
  /** After a restore: raises the store epoch, so that no token is ever issued twice, and ends every term. */
  restored(reason: string): Promise<{ readonly epoch: number; readonly ended: number }>;
}

export interface Entry {
  /** The seq of the journal's last record as the writer knows it. */
  readonly after: number;
  readonly records: readonly NewRecord[];
}
export interface Appended {
  readonly head: number;
  /** Notes ever sent to this inbox: more than were taken means some wait. */
  readonly notes: number;
}

export interface Fenced {
  append(fence: Fence, entry: Entry): Promise<Appended>;
  /** Independent writes in one call: each with its own fence and its own verdict. */
  appendAll(batch: readonly (readonly [Fence, Entry])[]): Promise<Verdict<Appended>[]>;
}

export interface RunView {
  readonly journal: number;
  readonly tenant: string;
  readonly id: string;
  readonly workflow: string;
  readonly version: string | null;
  readonly status: RunStatus;
  readonly cause: string | null;
  readonly stuckFrom: string | null;
  readonly inputHash: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly outcome: unknown;
  readonly parent: number | null;
  readonly root: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
  readonly notes: number;
  readonly lease: LeaseView;
}

export interface RunFilter {
  readonly workflow?: string;
  readonly status?: readonly RunStatus[];
  readonly label?: { readonly key: string; readonly value: string };
  /** Continue after this journal number (newest first). */
  readonly before?: number;
  readonly limit?: number;
}
export interface EffectFilter {
  readonly run?: string;
  /** The effect whose item journal has this number. */
  readonly item?: number;
  readonly role?: "act" | "inverse";
  readonly status?: readonly string[];
  readonly minAgeMs?: number;
  readonly limit?: number;
}

/** A page of the feed. `cursor` is opaque and resumes exactly after the last record. */
export interface FeedPage {
  readonly records: readonly FeedRecord[];
  readonly cursor: string;
  /** A transaction that holds the feed back, where the store can name it. */
  readonly blockedBy?: string;
}
export type FeedRecord = JournalRecord & {
  /** "journal" for main, item and lease journals; "inbox" for notes. */
  readonly in: "journal" | "inbox";
  /** Resumes exactly behind this record. */
  readonly cursor: string;
};

export interface RunProgress {
  readonly id: string;
  readonly journal: number;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly outcome: unknown;
  readonly ended: boolean;
  /** Nobody holds it, and it asks for nobody. */
  readonly atRest: boolean;
}

export interface AgendaItem {
  /** undefined: a holder's time runs out, and any reactor may find its item. */
  readonly reactor: string | undefined;
  /** 0: now. */
  readonly inMs: number;
}

export interface Settings {
  readonly schema: number;
  readonly epoch: number;
  readonly durable: boolean;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}

export interface Read {
  run(tenant: string, id: string): Promise<RunView | undefined>;
  runs(tenant: string, filter?: RunFilter): Promise<RunView[]>;
  /** How far the runs with these ids have come, in one look; those that do not exist are missing. */
  progress(tenant: string, ids: readonly string[]): Promise<RunProgress[]>;
  /** Records of one journal from `from` (default 1). `inbox` reads its notes instead. */
  journal(
    tenant: string,
    target: Target,
    page?: { from?: number; limit?: number; inbox?: boolean },
  ): Promise<JournalRecord[]>;
  effects(tenant: string, filter?: EffectFilter): Promise<EffectRow[]>;
  gates(tenant: string, filter?: { run?: string; open?: boolean; limit?: number }): Promise<GateRow[]>;
  timers(tenant: string, filter?: { run?: string; limit?: number }): Promise<TimerRow[]>;
  /** Timers whose time has come, oldest first, of all tenants: the timers reactor's work. */
  dueTimers(limit: number): Promise<DueTimer[]>;
  /** Milliseconds until the next timer or schedule; undefined: none is set. */
  nextTimerMs(): Promise<number | undefined>;
  /** When there is next something to do, for whom. One statement: it is all that an idle process asks. */
  agenda(tenant?: string): Promise<AgendaItem[]>;
  schedules(tenant: string): Promise<ScheduleRow[]>;
  dueSchedules(limit: number): Promise<ScheduleRow[]>;
  budgets(tenant: string, run: string): Promise<BudgetRow[]>;
  claimOf(tenant: string, scope: string, businessKey: string): Promise<(ClaimRow & { runId: string }) | undefined>;
  value(tenant: string, key: string): Promise<Value | undefined>;
  values(tenant: string, prefix: string, limit?: number): Promise<Value[]>;
  /** Versions after `after`, oldest first. TAPE_VALUE_COMPACTED when some are no longer kept. */
  valueHistory(tenant: string, key: string, after: number, limit?: number): Promise<Value[]>;
  lease(tenant: string, target: Target): Promise<LeaseView | undefined>;
  leases(tenant: string, filter?: { held?: boolean; limit?: number }): Promise<LeaseView[]>;
  /** The ledger: every term, oldest first. */
  terms(tenant: string, target: Target): Promise<TermView[]>;
  feed(cursor: string | undefined, limit?: number, tenant?: string): Promise<FeedPage>;
  settings(): Promise<Settings>;
  /** Store time, milliseconds since 1970. */
  now(): Promise<number>;
}

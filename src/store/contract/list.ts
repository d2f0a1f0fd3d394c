import type { LeaseTarget, LeaseView, TermView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { Credential } from "../../model/records.ts";
import type { BudgetRow, GateRow, ScheduleRow, TimerRow } from "../../model/rows.ts";
import type { RunError } from "../../model/run-error.ts";

/** Lists and summaries for operators, called as `store.read.x`. Each walks one index and stops after a page. */
export interface ListOps {
  /** A page of runs. */
  runs(tenant: string, filter?: RunFilter): Promise<Page<RunView>>;
  /** A page of gates. */
  gates(tenant: string, filter?: GateFilter): Promise<Page<GateRow>>;
  /** The timers of runs. */
  timers(tenant: string, filter?: { run?: string; limit?: number }): Promise<TimerRow[]>;
  /** By id, after `above`. */
  schedules(tenant: string, page?: { above?: string; limit?: number }): Promise<Page<ScheduleRow>>;
  /** The budgets of a run's tree. */
  budgets(tenant: string, run: string): Promise<BudgetRow[]>;
  /** Of all runs that have not ended: sums by unit, and the `limit` budgets nearest to their caps. */
  spend(tenant: string, limit?: number): Promise<BudgetSummary>;
  /** `buckets` intervals of `sizeMs` from `since` on. Each is counted up to a bound, by the indexes of those times. */
  rate(tenant: string, since: number, sizeMs: number, buckets: number): Promise<RunRate[]>;
  /** By key, after `above`; with `order: "desc"` from the last key down, before `above`. */
  values(
    tenant: string,
    prefix: string,
    limit?: number,
    above?: string,
    order?: "asc" | "desc",
  ): Promise<Page<StoredValue>>;
  /**
   * Versions after `after`, oldest first. TAPE_VALUE_COMPACTED if some of them are no longer kept. A deletion erases the
   * versions before it; the history then starts with the deletion.
   */
  valueHistory(tenant: string, key: string, after: number, limit?: number): Promise<Page<StoredValue>>;
  /** Newest first; those of `kind: "name"` by name, without reading the leases of runs and items. */
  leases(tenant: string, filter?: LeaseFilter): Promise<Page<LeaseView>>;
  /** The term history, oldest first. */
  terms(tenant: string, target: LeaseTarget): Promise<TermView[]>;
  /** Operator actions, newest first, in all tenants or in one. */
  audit(tenant: string | undefined, page?: { before?: string; limit?: number }): Promise<AuditEntry[]>;
}

/** Which leases to list. */
export interface LeaseFilter {
  /** Only leases with a holder, or only those without. */
  readonly held?: boolean;
  readonly limit?: number;
  /** Only named leases. The fields below need it. */
  readonly kind?: "name";
  /** At most 100 names. */
  readonly names?: readonly string[];
  /** Only names that start with this text. */
  readonly prefix?: string;
  /** Continues the list after this name. */
  readonly above?: string;
}

/**
 * Rows of a list. `more`: the page was full, in rows or in bytes; the list continues after its last row. `missing`: the
 * shards that could not be reached, whose rows the list lacks.
 */
export type Page<T> = T[] & { readonly more?: boolean; readonly missing?: readonly string[] };

/** A run as lists and operators see it. */
export interface RunView {
  readonly journal: number;
  readonly tenant: string;
  /** The id of the run. */
  readonly id: string;
  readonly workflow: string;
  /** The version that the workflow stated at the start. */
  readonly version: string | null;
  readonly status: RunStatus;
  /** How it ends or has ended: completed, failed or cancelled; null: neither yet. */
  readonly cause: string | null;
  /** The phase in which it got stuck. */
  readonly stuckFrom: string | null;
  /** The fingerprint of workflow and input. */
  readonly inputHash: string;
  readonly labels: Readonly<Record<string, string>>;
  /** The result, or the error. */
  readonly outcome: unknown;
  /** Of a run that failed or was cancelled: the error in its outcome, in short. */
  readonly error?: RunError;
  /** Its payloads were erased. */
  readonly erased?: true;
  /** The journal of the run that started it as a child. */
  readonly parent: number | null;
  /** The journal of the run at the top of its tree. */
  readonly root: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
  /** How many notes its inbox has. */
  readonly notes: number;
  readonly lease: LeaseView;
}

/** Labels by key: the value, or the possible values. */
export type LabelFilter = Readonly<Record<string, string | readonly string[]>>;

/** Which runs to list. */
export interface RunFilter {
  /** Only runs of this workflow. */
  readonly workflow?: string;
  /** Only runs in one of these statuses. */
  readonly status?: readonly RunStatus[];
  /**
   * Only runs with all of these labels; of several values, one. The list is then newest first by journal number, also
   * with a prefix or times, except with `below`.
   */
  readonly labels?: LabelFilter;
  /** One more label; older than `labels`. */
  readonly label?: { readonly key: string; readonly value: string };
  /** Started at or after, and before; ended likewise. Milliseconds since 1970, by the store's clock. */
  readonly startedSince?: number;
  /** Started before this time. */
  readonly startedUntil?: number;
  /** Ended at this time or later. */
  readonly endedSince?: number;
  /** Ended before this time. */
  readonly endedUntil?: number;
  /** true: only runs with an effect or an obligation that is UNKNOWN or STUCK. */
  readonly inDoubt?: boolean;
  /** Only ids with this prefix, in the order of their ids. */
  readonly prefix?: string;
  /** Only runs below the root with this journal number, oldest first. */
  readonly below?: number;
  /** Continue after the run with this journal number, in the order of the list. */
  readonly before?: number;
  readonly limit?: number;
}

export interface EffectFilter {
  readonly run?: string;
  /** The effect whose item journal has this number. */
  readonly item?: number;
  readonly role?: "effect" | "compensation";
  /** Only obligations of the root with this journal number and its descendants, in the order of compensation. */
  readonly root?: number;
  /** With `root`: only obligations of the run with this journal number and its descendants; no surplus. */
  readonly below?: number;
  /** With `run`: from this position on. With `root`: from the run with this journal number on. */
  readonly from?: number;
  readonly status?: readonly string[];
  readonly minAgeMs?: number;
  /** In a list of all effects, and with `order: "desc"` also of one run: continue after this `effectCursor`. */
  readonly after?: string;
  /**
   * `desc`: newest first, that is the effects of the newest run, and of a run the latest, a page at a time. Not with
   * `root`, `item` and `from`. Without it oldest first.
   */
  readonly order?: "asc" | "desc";
  readonly limit?: number;
}

export interface GateFilter {
  readonly run?: string;
  readonly open?: boolean;
  /** Continue after this `gateCursor`. */
  readonly after?: string;
  readonly limit?: number;
}

/** How many runs started and ended in an interval. */
export interface RunRate {
  /** Start of the interval. */
  readonly at: number;
  readonly started: number;
  readonly ended: number;
  /** Ended runs that failed. */
  readonly failed: number;
  /** There are more than were counted. */
  readonly more: boolean;
}

/** What runs that have not ended may still spend, in millionths of the unit. */
export interface BudgetSummary {
  /** Nearest to its cap first. */
  readonly budgets: readonly (BudgetRow & {
    readonly runId: string;
    readonly workflow: string;
    readonly status: RunStatus;
  })[];
  readonly units: readonly {
    readonly unit: string;
    readonly runs: number;
    /** null: the sum of the runs without a cap. A unit is listed twice if only some runs have one. */
    readonly cap: number | null;
    readonly reserved: number;
    readonly spent: number;
  }[];
  /** There are older budgets that were not counted. */
  readonly more: boolean;
}

/** A value with its version. */
export interface StoredValue {
  /** The key of the value. */
  readonly key: string;
  readonly version: number;
  /** undefined if `deleted`. */
  readonly value: unknown;
  readonly deleted: boolean;
  readonly at: number;
}

/**
 * An operator action, written in the same transaction as its effect. It is kept outside the journals, so deleting runs
 * does not delete it.
 */
export interface AuditEntry {
  /** Continues the list after this entry. */
  readonly cursor: string;
  readonly journal: number;
  /** The run's id or the lease's name; null: the action concerns the store. */
  readonly subject: string | null;
  /** Empty: the action concerns all tenants. */
  readonly tenant: string;
  readonly at: number;
  readonly by: string;
  readonly action: string;
  readonly reason: string;
  /** What the action concerned. */
  readonly detail?: unknown;
  /** The credential that was used. */
  readonly via?: Credential;
  /** Dense within each tenant, from 1. */
  readonly n: number;
  /** Over this entry and the hash of its predecessor; empty for entries that are older than hashes. */
  readonly hash: string;
}

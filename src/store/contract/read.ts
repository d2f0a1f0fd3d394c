import type { LeaseTarget, LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { BusinessKeyRow, EffectRow, ScheduleRow, TimerRow } from "../../model/rows.ts";
import type { AdminReadOps } from "./admin.ts";
import type { EffectFilter, ListOps, Page, RunView, StoredValue } from "./list.ts";

/** Reads for everyone: declared here what the engine and the reactors need, in list.ts and admin.ts the rest. */
export interface ReadOps extends ListOps, AdminReadOps {
  run(tenant: string, id: string): Promise<RunView | undefined>;
  /** The progress of the runs with these ids, in one query; those that do not exist are missing. */
  progress(tenant: string, ids: readonly string[]): Promise<RunProgress[]>;
  /** Records of one journal from `from` (default 1). `inbox` reads its notes instead. */
  journal(
    tenant: string,
    target: LeaseTarget,
    page?: { from?: number; limit?: number; inbox?: boolean },
  ): Promise<Page<JournalRecord>>;
  /** Those of one run or root come whole, or are refused with TAPE_TOO_LARGE. */
  effects(tenant: string, filter?: EffectFilter): Promise<Page<EffectRow>>;
  /** Timers that are due, of one tenant oldest first, of all tenants in turn: the timers reactor's work. */
  dueTimers(limit: number, tenant?: string): Promise<DueTimer[]>;
  dueSchedules(limit: number, tenant?: string): Promise<ScheduleRow[]>;
  /**
   * When there is work next, for which reactor; of runs, only those of these workflows. One statement where tenant and
   * workflows are named: it is the only query of an idle process.
   */
  agenda(tenant?: string, workflows?: readonly string[]): Promise<AgendaItem[]>;
  /** Runs of other workflows than these that have been runnable for `minLagMs` and that no process has claimed. */
  unserved(workflows: readonly string[], minLagMs: number, tenant?: string): Promise<UnservedWorkflow[]>;
  businessKeyOwner(
    tenant: string,
    scope: string,
    businessKey: string,
  ): Promise<(BusinessKeyRow & { runId: string }) | undefined>;
  value(tenant: string, key: string): Promise<StoredValue | undefined>;
  lease(tenant: string, target: LeaseTarget): Promise<LeaseView | undefined>;
  feed(cursor: string | undefined, limit?: number, tenant?: string): Promise<FeedPage>;
  /** Store time, milliseconds since 1970. */
  now(): Promise<number>;
}

/**
 * A page of the feed. `cursor` is opaque and resumes exactly after the last record. A cursor of one tenant's feed reveals
 * nothing about the writes of others, and is useless to them.
 */
export interface FeedPage {
  readonly records: readonly FeedRecord[];
  readonly cursor: string;
  /** There may be more behind the cursor already, even if this page has no records: one query reads only so far. */
  readonly more?: boolean;
  /** A transaction that holds the feed back, where the store can name it. */
  readonly blockedBy?: string;
}

/** A record as the feed delivers it. */
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
  /** No process holds it, and it waits for no reactor. */
  readonly idle: boolean;
}

export interface DueTimer extends TimerRow {
  readonly lateMs: number;
}

export interface AgendaItem {
  /** undefined: a holder's lease expires, and any reactor may find its item. */
  readonly reactor: string | undefined;
  /** 0: now. */
  readonly dueInMs: number;
  /** How long it has been due. */
  readonly lateMs: number;
}

/** Runnable runs of one workflow that no process claims. */
export interface UnservedWorkflow {
  readonly workflow: string;
  /** At least this many. */
  readonly runs: number;
  /** How long the oldest has been due, or abandoned. */
  readonly lagMs: number;
}

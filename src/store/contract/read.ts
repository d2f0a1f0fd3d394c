import type { BuildClaim } from "../../model/build.ts";
import type { LeaseTarget, LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { JournalRecord } from "../../model/records.ts";
import type { BusinessKeyRow, EffectRow, ScheduleRow, TimerRow } from "../../model/rows.ts";
import type { RunError } from "../../model/run-error.ts";
import type { AdminReadOps } from "./admin.ts";
import type { BlobReadOps } from "./blobs.ts";
import type { BuildReadOps } from "./builds.ts";
import type { CensusOps } from "./census.ts";
import type { EventReadOps } from "./events.ts";
import type { EffectFilter, ListOps, Page, RunView, StoredValue } from "./list.ts";
import type { QueueReadOps } from "./queues.ts";
import type { RetentionReadOps } from "./retention.ts";
import type { StreamReadOps } from "./streams.ts";
import type { TalkReadOps } from "./talk.ts";

/**
 * Reads, for every caller. Those of the engine and the reactors are declared here, the others in list.ts, admin.ts,
 * talk.ts, streams.ts, blobs.ts, queues.ts, builds.ts, events.ts and census.ts.
 */
export interface ReadOps
  extends ListOps,
    AdminReadOps,
    TalkReadOps,
    StreamReadOps,
    BlobReadOps,
    QueueReadOps,
    BuildReadOps,
    EventReadOps,
    RetentionReadOps,
    CensusOps {
  /** One run by its id. */
  run(tenant: string, id: string): Promise<RunView | undefined>;
  /** The progress of the runs with these ids, in one query. Ids that do not exist are left out. */
  progress(tenant: string, ids: readonly string[]): Promise<RunProgress[]>;
  /** Records of one journal from `from` (default 1). `inbox` reads its notes instead. */
  journal(
    tenant: string,
    target: LeaseTarget,
    page?: { from?: number; limit?: number; inbox?: boolean },
  ): Promise<Page<JournalRecord>>;
  /** Effects of one run or root are returned completely, or rejected with TAPE_TOO_LARGE. */
  effects(tenant: string, filter?: EffectFilter): Promise<Page<EffectRow>>;
  /** Due timers, the work of the timers reactor: oldest first for one tenant, in turn for all tenants. */
  dueTimers(limit: number, tenant?: string): Promise<DueTimer[]>;
  /** Schedules that must fire now. */
  dueSchedules(limit: number, tenant?: string): Promise<ScheduleRow[]>;
  /**
   * When the next work is due, for which reactor; of runs, only those of these workflows and of these queues of the
   * tenant, and of runs that are pinned to a build those of this one. One statement if tenant and workflows are given:
   * it is the only query of an idle process.
   */
  agenda(
    tenant?: string,
    workflows?: readonly string[],
    queues?: readonly string[],
    build?: BuildClaim,
  ): Promise<AgendaItem[]>;
  /**
   * Runs of other workflows, or pinned to other builds, that have been runnable for `minLagMs` and that no process has
   * claimed.
   */
  unserved(
    workflows: readonly string[],
    minLagMs: number,
    tenant?: string,
    build?: BuildClaim,
  ): Promise<UnservedWorkflow[]>;
  /** The effect that has a business key. */
  businessKeyOwner(
    tenant: string,
    scope: string,
    businessKey: string,
  ): Promise<(BusinessKeyRow & { runId: string }) | undefined>;
  /** One value by its key. */
  value(tenant: string, key: string): Promise<StoredValue | undefined>;
  /** One lease. */
  lease(tenant: string, target: LeaseTarget): Promise<LeaseView | undefined>;
  /** A page of the feed after a cursor. */
  feed(cursor: string | undefined, limit?: number, tenant?: string): Promise<FeedPage>;
  /**
   * The cursor of the feed's end: everything written after this call comes after it, and nothing that a page has already
   * returned. Writes of transactions that are open during the call come after it, too.
   */
  frontier(tenant?: string): Promise<string>;
  /** Store time, milliseconds since 1970. */
  now(): Promise<number>;
}

/**
 * A page of the feed. `cursor` is opaque and resumes exactly after the last record. A cursor of one tenant's feed
 * reveals nothing about the writes of others, and is useless to them.
 */
export interface FeedPage {
  readonly records: readonly FeedRecord[];
  readonly cursor: string;
  /** More records may follow the cursor already, even if this page has none: one query scans a bounded range. */
  readonly more?: boolean;
  /** The transaction that has held the feed back for a second, if the store can name it. */
  readonly blockedBy?: string;
}

/** A record as the feed delivers it. */
export type FeedRecord = JournalRecord & {
  /** "journal" for main, item and lease journals; "inbox" for notes. */
  readonly in: "journal" | "inbox";
  /** Resumes exactly after this record. */
  readonly cursor: string;
};

export interface RunProgress {
  readonly id: string;
  readonly journal: number;
  readonly workflow: string;
  readonly status: RunStatus;
  readonly outcome: unknown;
  /** As in a `RunView`. */
  readonly error?: RunError;
  readonly ended: boolean;
  /** No process holds it, and it waits for no reactor and no slot. */
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
  /** They are pinned to it. */
  readonly build?: string;
  /** At least this many. */
  readonly runs: number;
  /** How long the oldest has been due or abandoned. */
  readonly lagMs: number;
}

import type { LeaseView } from "../../model/lease.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { JournalRecord } from "../../model/records.ts";

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

/** Rows of a list. `more`: the page was full, in rows or in bytes; it continues behind its last row. */
export type Page<T> = T[] & { readonly more?: boolean };

/**
 * A page of the feed. `cursor` is opaque and resumes exactly after the last record. Those of one tenant's feed tell
 * nothing of what others write, and are worth nothing to others.
 */
export interface FeedPage {
  readonly records: readonly FeedRecord[];
  readonly cursor: string;
  /** There may be more behind the cursor already, also where this page has no records: it was as far as one look goes. */
  readonly more?: boolean;
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
  /** How long it has been due. */
  readonly lateMs: number;
}

/** Runs of one workflow that could go on and that nobody takes. */
export interface UnservedWorkflow {
  readonly workflow: string;
  /** At least so many. */
  readonly runs: number;
  /** How long the oldest has been due, or abandoned. */
  readonly lagMs: number;
}

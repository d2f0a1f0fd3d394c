import type { TapeError } from "./errors.ts";
import type { Fence } from "./fence.ts";
import type { SlotState } from "./queue.ts";
import type { TermEnd, TermReason } from "./records.ts";
import type { JournalKind } from "./rows.ts";

/** The types of leases: requests, granted terms, and views for readers. */

export type ItemResult<T> = ({ readonly ok: true } & T) | { readonly ok: false; readonly error: TapeError };

/** The claimant of a lease. `owner` is random for each process; `label` is a name for operators. */
export interface Claimant {
  readonly owner: string;
  readonly label: string;
  readonly reactor: string;
  readonly ttlMs: number;
  /** Renewals that report no progress for longer than this are refused as stalled. */
  readonly maxStallMs?: number;
}

/** A term that the store granted to its claimant. */
export interface Term {
  readonly fence: Fence;
  readonly journal: number;
  /** Whose lease it is: a run's, an item's or a named one. */
  readonly kind: JournalKind;
  readonly tenant: string;
  /** The run of the journal; for a named lease the journal's own number. */
  readonly run: number;
  readonly ttlMs: number;
  /** The last record of the journal: the next append goes after it. */
  readonly head: number;
  /** Notes ever sent to this inbox. */
  readonly notes: number;
  readonly reason: TermReason;
  /** The owner whose term this takeover ended. Only in the first response to a find. */
  readonly takenFrom?: string;
  /** How long the work had been due, or abandoned, when it was found. Only in the first response. */
  readonly lagMs?: number;
  /** The run's id, if the find has it. */
  readonly name?: string;
  /** Preloaded before its timer fires: nothing is due yet. Only in the first response. */
  readonly preloaded?: boolean;
  /** The upstream of this item: its effect's connector, otherwise the effect. Only from a find with a share. */
  readonly callee?: string;
  /** The queue of this run; empty: none, but it started later, or has a unique key. */
  readonly queue?: string;
  /**
   * The body of the run's first record, if the journal has held no other before this term. Only if it is short, and only
   * in the first response.
   */
  readonly created?: string;
  /** What the previous holders of a named lease have left about their work; absent: nothing. */
  readonly checkpoint?: string;
  /** The first record of the run's current generation; absent: the run has only one. */
  readonly begins?: number;
}

/** A lease, by its run, its name or its journal. */
export type LeaseTarget = { readonly run: string } | { readonly name: string } | { readonly journal: number };

/** The condition under which an acquire succeeds. */
export type AcquireCondition =
  | "free" // it has no holder
  | "expired" // its TTL has passed
  | "free_or_expired"
  | { readonly owner: string | null; readonly token: bigint } // exactly as it was read
  | "any"; // preempts a live holder; requires by and auditReason

/** A request for a new term of a lease. */
export interface AcquireRequest {
  readonly target: LeaseTarget;
  readonly claimant: Claimant;
  /** Names the attempt: repeating it after a lost response returns the same term. */
  readonly nonce: bigint;
  readonly expect: AcquireCondition;
  readonly reason?: TermReason;
  /** The operator who acquires it by hand. */
  readonly by?: string;
  readonly auditReason?: string;
}

/** The granted term, or the refusal and the current holder. */
export type AcquireResult =
  | { readonly ok: true; readonly term: Term }
  | { readonly ok: false; readonly error: TapeError; readonly holder?: LeaseView };

/** A renewal of one term, with its holder's progress. */
export interface RenewRequest {
  readonly fence: Fence;
  readonly progress: number;
  /** How long before the renewal the last progress was made, by the holder's clock. */
  readonly progressAgoMs?: number;
  readonly progressNote?: string;
}
/** The note counter and the TTL of a renewed lease, or the refusal. */
export type RenewResult = ItemResult<{ readonly notes: number; readonly ttlMs: number }>;

/** A lease as lists and operators see it. */
export interface LeaseView {
  readonly journal: number;
  /** Whose lease it is: a run's, an item's or a named one. */
  readonly kind: JournalKind;
  readonly tenant: string;
  /** The journal of the run, of a run's or an item's lease. */
  readonly run: number;
  /** The run's id or the lease's name. */
  readonly name: string | null;
  readonly state: "FREE" | "HELD" | "EXPIRED" | "DOOMED";
  readonly token: bigint;
  readonly owner: string | null;
  readonly label: string | null;
  readonly reactor: string | null;
  readonly ttlMs: number;
  /** Milliseconds until it can be taken over; 0: now. */
  readonly remainingMs: number;
  readonly heldMs: number;
  readonly reason: TermReason | null;
  readonly renewals: number;
  readonly longestGapMs: number;
  readonly progress: number;
  /** How long ago the last sign of progress was. */
  readonly progressAgoMs: number;
  readonly progressNote: string | null;
  /** How long the holder may be without progress; null: no limit. */
  readonly maxStallMs: number | null;
  /** Whether no process may hold it. */
  readonly paused: boolean;
  /** The reactor that takes the journal next. */
  readonly nextReactor: string | null;
  /** The queue of its run. */
  readonly queue: string | null;
  /** Where its run is in the queue; null: it has none, or has left it. */
  readonly slot: SlotState | null;
  /** Of a named lease whose holders keep one. */
  readonly checkpoint?: string;
  /** Of a run that is pinned to one. */
  readonly build?: string;
  /** The first record of its run's current generation; absent: the run has only one, or this is a list. */
  readonly begins?: number;
}

/** One entry of the term history: a finished or current term, and why it started and ended. */
export interface TermView {
  readonly token: bigint;
  readonly owner: string;
  readonly label: string;
  readonly reactor: string;
  readonly startedAt: number;
  readonly startReason: TermReason;
  /** The operator who started or ended the term by hand. */
  readonly by?: string;
  readonly auditReason?: string;
  readonly endedAt?: number;
  readonly endReason?: TermEnd;
  readonly renewals: number;
  readonly longestGapMs: number;
  readonly progress: number;
  readonly progressNote?: string;
}

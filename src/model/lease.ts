import type { TapeError } from "./errors.ts";
import type { Fence } from "./fence.ts";
import type { TermEnd, TermReason } from "./records.ts";
import type { JournalKind } from "./rows.ts";

/** The vocabulary of leases: who asks, what is granted, what readers see. */

export type ItemResult<T> = ({ readonly ok: true } & T) | { readonly ok: false; readonly error: TapeError };

/** Who acquires: the incarnation is random per process, the label is for people. */
export interface Claimant {
  readonly owner: string;
  readonly label: string;
  readonly reactor: string;
  readonly ttlMs: number;
  /** Renewals without progress for longer than this are refused as stalled. */
  readonly maxStallMs?: number;
}

/** A term that the store granted to its claimant. */
export interface Term {
  readonly fence: Fence;
  readonly journal: number;
  readonly kind: JournalKind;
  readonly tenant: string;
  /** The run the journal belongs to (its own number for a named lease). */
  readonly run: number;
  readonly ttlMs: number;
  /** The last record of the journal: the next append goes after it. */
  readonly head: number;
  /** Notes ever sent to this inbox. */
  readonly notes: number;
  readonly reason: TermReason;
  /** Whose term it ended by taking over; known only in the first answer of a find. */
  readonly takenFrom?: string;
  /** How long it had been due, or abandoned, when it was found; known only in the first answer. */
  readonly lagMs?: number;
  /** The run's id, where a find has it at hand. */
  readonly name?: string;
  /** It was taken ahead of its timer: nothing is due yet. Known only in the first answer. */
  readonly preloaded?: boolean;
  /** Whom work on this item calls: its effect's connector, or where it has none the effect. Only of a find with a share. */
  readonly callee?: string;
}

/** A lease, by its run, its name or its journal. */
export type LeaseTarget = { readonly run: string } | { readonly name: string } | { readonly journal: number };

/** What must be true of the lease for an acquire to succeed. */
export type AcquireCondition =
  | "free" // nobody holds it
  | "expired" // its holder's time has run out
  | "free_or_expired"
  | { readonly owner: string | null; readonly token: bigint } // exactly as read before
  | "any"; // a takeover: pre-empts a live holder, needs by and auditReason

/** A request for a new term of a lease. */
export interface AcquireRequest {
  readonly target: LeaseTarget;
  readonly claimant: Claimant;
  /** Names the attempt: repeating it after a lost answer returns the same term. */
  readonly nonce: bigint;
  readonly expect: AcquireCondition;
  readonly reason?: TermReason;
  readonly by?: string;
  readonly auditReason?: string;
}

/** The granted term, or the refusal and the present holder. */
export type AcquireResult =
  | { readonly ok: true; readonly term: Term }
  | { readonly ok: false; readonly error: TapeError; readonly holder?: LeaseView };

/** A renewal of one term, with the progress of its holder. */
export interface RenewRequest {
  readonly fence: Fence;
  readonly progress: number;
  readonly progressNote?: string;
}
/** The note counter and the TTL of a renewed lease, or the refusal. */
export type RenewResult = ItemResult<{ readonly notes: number; readonly ttlMs: number }>;

/** A lease as lists and operators see it. */
export interface LeaseView {
  readonly journal: number;
  readonly kind: JournalKind;
  readonly tenant: string;
  readonly run: number;
  /** The run's id or the lease's name. */
  readonly name: string | null;
  readonly state: "FREE" | "HELD" | "EXPIRED" | "DOOMED";
  readonly token: bigint;
  readonly owner: string | null;
  readonly label: string | null;
  readonly reactor: string | null;
  readonly ttlMs: number;
  /** Milliseconds until it may be taken over; 0 when it may be now. */
  readonly remainingMs: number;
  readonly heldMs: number;
  readonly reason: TermReason | null;
  readonly renewals: number;
  readonly longestGapMs: number;
  readonly progress: number;
  readonly progressAgoMs: number;
  readonly progressNote: string | null;
  readonly maxStallMs: number | null;
  readonly paused: boolean;
  readonly nextReactor: string | null;
}

/** One line of the ledger: a finished or running term, and why it began and ended. */
export interface TermView {
  readonly token: bigint;
  readonly owner: string;
  readonly label: string;
  readonly reactor: string;
  readonly startedAt: number;
  readonly startReason: TermReason;
  readonly by?: string;
  readonly auditReason?: string;
  readonly endedAt?: number;
  readonly endReason?: TermEnd;
  readonly renewals: number;
  readonly longestGapMs: number;
  readonly progress: number;
  readonly progressNote?: string;
}

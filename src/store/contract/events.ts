import type { DeadLetter, LetterState, NewDeadLetter } from "../../model/dead-letter.ts";
import type { Fence } from "../../model/fence.ts";
import type { LeaseView } from "../../model/lease.ts";
import type { JournalKind } from "../../model/rows.ts";
import type { SinkPause } from "../../model/sink-checkpoint.ts";
import type { SinkState } from "../../model/sink-state.ts";
import type { AuditInfo } from "./admin.ts";
import type { Page } from "./list.ts";

/** What the holder of a named lease keeps about its work, called as `store.fenced.x`. No record is written. */
export interface CheckpointOps {
  /** Replaces the checkpoint of a named lease; null removes it. Only its holder can, and the next holder gets it. */
  checkpoint(fence: Fence, text: string | null): Promise<void>;
  /**
   * Stores an event that the sink of this lease refused. Repeating it writes the same row; one that an operator has
   * settled stays settled, except that a replay which fails is open again.
   */
  deadLetter(fence: Fence, letter: NewDeadLetter): Promise<void>;
  /** The replay of a dead letter was delivered. */
  letterSent(fence: Fence, event: string): Promise<void>;
}

/** Orders of operators about dead letters, called as `store.intake.x`. */
export interface EventWriteOps {
  /**
   * Has dead letters sent again, or discards them: these, or all open ones up to a batch. Returns how many.
   * TAPE_SINK_UNKNOWN if there is no such sink.
   */
  settleLetters(
    tenant: string,
    sink: string,
    to: "REPLAY" | "DISCARDED",
    events: readonly string[] | undefined,
    audit: AuditInfo,
  ): Promise<number>;
}

/** What sinks and their operators read, called as `store.read.x`. */
export interface EventReadOps {
  /** Dead letters in one state (default OPEN), oldest first, after this `letterCursor`. */
  deadLetters(
    tenant: string,
    sink: string,
    page?: { state?: LetterState; after?: string; limit?: number },
  ): Promise<Page<DeadLetter>>;
  /** What the records of these journals are about. Journals that do not exist are left out. */
  subjects(tenant: string, journals: readonly number[]): Promise<Subject[]>;
  /** Sinks that have ever run, by name, after `above`. */
  sinks(tenant: string, page?: { above?: string; limit?: number }): Promise<Page<SinkRow>>;
}

/** Whose record it is: a run, an item of a run, or a named lease. */
export interface Subject {
  readonly journal: number;
  /** What the record is about: a run, an item or a named lease. */
  readonly kind: JournalKind;
  /** Of a named lease. */
  readonly name?: string;
  /** Of a run, or the run of an item. */
  readonly run?: SubjectRun;
  /** The effect of an item. */
  readonly item?: { readonly pos: number; readonly sub: number; readonly name: string | null };
}

/** A run as its events describe it. */
export interface SubjectRun {
  /** The id of the run. */
  readonly id: string;
  readonly workflow: string;
  /** The version that the workflow states. */
  readonly version: string | null;
  readonly labels: Readonly<Record<string, string>>;
  /** The id of the root run, which may be its own. */
  readonly root: string;
  readonly parent: string | null;
}

/** A sink as the store knows it: its lease, with its checkpoint, how late it is, and its open dead letters. */
export interface SinkRow {
  readonly sink: string;
  readonly lease: LeaseView;
  readonly state: SinkState;
  /** Milliseconds since the first record that it has not passed was written; 0: it has passed all of them. */
  readonly lagMs: number;
  /** When the last record that it has passed was written; undefined: it has no checkpoint, or begins at the start. */
  readonly passedAt?: number;
  readonly paused?: SinkPause;
  /** At most 10 000 are counted. */
  readonly openLetters: number;
  /** Runs that ended more than an hour ago and that pruning keeps for this sink. At most 10 000 are counted. */
  readonly keptRuns: number;
}

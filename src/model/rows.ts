import type { EffectStatus, GateStatus, ObligationStatus, RunPhase, TimerStatus } from "./machines.ts";
import type { SlotState } from "./queue.ts";
import type { TermEnd, TermReason } from "./records.ts";

/** Rows of the store's tables as TypeScript types. Payload columns contain the codec's text. */

export type JournalKind = "run" | "item" | "name" | "store";

export interface RunRow {
  readonly journal: number;
  readonly tenant: string;
  readonly id: string;
  readonly workflow: string;
  readonly version: string | null;
  readonly phase: RunPhase;
  readonly cause: "completed" | "failed" | "cancelled" | null;
  readonly stuckFrom: RunPhase | null;
  readonly inputHash: string;
  readonly labels: string | null;
  readonly outcome: string | null;
  readonly parent: number | null;
  readonly parentPos: number | null;
  readonly root: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

export interface LeaseRow {
  readonly journal: number;
  readonly kind: JournalKind;
  readonly tenant: string;
  /** The run of this journal; for a named lease its own number. */
  readonly run: number;
  /** The backlog in which a run waits. */
  readonly workflow: string;
  readonly token: bigint;
  readonly nonce: bigint | null;
  readonly owner: string | null;
  readonly label: string | null;
  readonly reactor: string | null;
  readonly ttlMs: number;
  /** On the store's lease clock, which is not wall time on SQLite. */
  readonly expiresAt: number;
  readonly acquiredAt: number;
  readonly reason: TermReason | null;
  readonly renewals: number;
  readonly renewedAt: number;
  readonly longestGapMs: number;
  readonly progress: number;
  readonly progressAt: number;
  readonly progressNote: string | null;
  readonly maxStallMs: number | null;
  readonly doomed: boolean;
  readonly paused: boolean;
  /** The store refused a renewal because the holder made no progress. */
  readonly stalled: boolean;
  readonly notes: number;
  readonly open: boolean;
  readonly nextReactor: string | null;
  readonly dueAt: number;
  /** Why the last term ended; determines the reason of the next one. */
  readonly lastEndReason: TermEnd | null;
  /** The name of its queue; empty: none, but it starts later, or has a unique key. */
  readonly queue: string | null;
  /** Where its run is in the queue; null: it has none, or has left it. */
  readonly slot: SlotState | null;
  /** Where the work of a named lease has come to; null also where it was not read. */
  readonly checkpoint: string | null;
  /** The build that a run is pinned to. */
  readonly build: string | null;
  /** The first record of the run's current generation; 1 also where it was not read. */
  readonly begins: number;
}

/** An effect or a compensation as the store holds it. */
export interface EffectRow {
  /** The journal of the run. */
  readonly run: number;
  readonly pos: number;
  readonly sub: number;
  readonly tenant: string;
  /** The journal of the run at the top of the tree. */
  readonly root: number;
  /** An effect, or the compensation of one. */
  readonly role: "effect" | "compensation";
  readonly name: string | null;
  readonly connector: string | null;
  /** Whether it may be retried. */
  readonly semantics: "idempotent" | "non_idempotent" | "read";
  /** Who calls: the run's driver, or the outbox. */
  readonly dispatch: "inline" | "outbox";
  readonly status: EffectStatus | ObligationStatus;
  /** The journal whose lease authorises changes of this effect. */
  readonly authority: number;
  /** The number of its item journal, reserved or open. */
  readonly item: number | null;
  /** The idempotency key, which the upstream receives. */
  readonly key: string;
  readonly businessKey: string | null;
  readonly argsHash: string | null;
  readonly args: string;
  /** The rule that settles it, as JSON. */
  readonly policy: string | null;
  readonly attempt: number;
  /** The token of the term that sent it. No view shows the nonce, because both together would authorise writes. */
  readonly attemptToken: bigint | null;
  /** Until when an authorised attempt may start. */
  readonly sendUntil: number | null;
  readonly reason: string | null;
  /** The encoded result. */
  readonly outcome: string | null;
  /** Whether it is a duplicate that must be compensated. */
  readonly surplus: boolean;
  /** An attempt may have happened, and a retry was due. */
  readonly uncertain: boolean;
  readonly createdAt: number;
  readonly changedAt: number;
}

export interface GateRow {
  readonly run: number;
  readonly pos: number;
  readonly tenant: string;
  readonly name: string;
  readonly status: GateStatus;
  readonly binds: string | null;
  readonly payload: string | null;
  /** The approvers as JSON; null: every sender of signals may answer. */
  readonly approvers: string | null;
  /** Set for a gate that only its token opens. */
  readonly callback?: "json" | "raw";
  readonly value: string | null;
  readonly openedAt: number;
}

export interface TimerRow {
  readonly run: number;
  readonly pos: number;
  readonly purpose: string;
  readonly tenant: string;
  readonly status: TimerStatus;
  /** Wall time. */
  readonly dueAt: number;
}

export interface BudgetRow {
  readonly run: number;
  readonly unit: string;
  /** null: counted without a cap. */
  readonly cap: number | null;
  readonly reserved: number;
  readonly spent: number;
}

export interface BusinessKeyRow {
  readonly tenant: string;
  readonly scope: string;
  readonly businessKey: string;
  readonly run: number;
  readonly pos: number;
}

export interface ValueRow {
  readonly tenant: string;
  readonly key: string;
  readonly version: number;
  /** null once deleted; the version stays. */
  readonly value: string | null;
  readonly at: number;
}

export interface ScheduleRow {
  readonly tenant: string;
  readonly id: string;
  readonly version: number;
  readonly spec: string;
  readonly nextAt: number | null;
  readonly paused: boolean;
}

export interface TombstoneRow {
  readonly tenant: string;
  readonly id: string;
  readonly token: bigint;
  readonly at: number;
  /** Its place in lists. */
  readonly journal: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

/** Identifies an effect that an operator must resolve. */
export interface EffectRef {
  readonly run: number;
  readonly pos: number;
  readonly sub: number;
}

export const effectRefOf = ({ run, pos, sub }: EffectRef): EffectRef => ({ run, pos, sub });

/** What an operator needs to know about an effect that only they can settle. */
export interface UnresolvedEffect extends EffectRef {
  readonly name: string | null;
  readonly reason?: string | null | undefined;
  /** The error of the last attempt. */
  readonly error?: unknown;
}

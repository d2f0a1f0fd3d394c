import { TapeError } from "../../model/errors.ts";
import type { RunStatus } from "../../model/machines.ts";
import type { BudgetRow, EffectRow, GateRow } from "../../model/rows.ts";

/** What lists and figures for people are asked by, and what the figures are: a part of the contract. */

export interface RunFilter {
  readonly workflow?: string;
  readonly status?: readonly RunStatus[];
  readonly label?: { readonly key: string; readonly value: string };
  /** Begun at or after, and before; likewise ended. Milliseconds since 1970, by the store's clock. */
  readonly startedSince?: number;
  readonly startedUntil?: number;
  readonly endedSince?: number;
  readonly endedUntil?: number;
  /** true: only those with an effect or an obligation that is UNKNOWN or STUCK. */
  readonly doubt?: boolean;
  /** Only ids that begin so; they come in the order of their ids. */
  readonly prefix?: string;
  /** Only what is below the root with this journal number, oldest first. */
  readonly below?: number;
  /** Continue behind the run with this journal number, in the list's own order. */
  readonly before?: number;
  readonly limit?: number;
}

/** How many runs began and ended in a stretch of time. */
export interface RunRate {
  /** When it begins. */
  readonly at: number;
  readonly started: number;
  readonly ended: number;
  /** Of those that ended: because they failed. */
  readonly failed: number;
  /** There were more than were counted. */
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
    readonly cap: number;
    readonly reserved: number;
    readonly spent: number;
  }[];
  /** There are older budgets that were not looked at. */
  readonly more: boolean;
}

/** What a process at work says of itself. `body` is the process's own to choose, and short. */
export interface ProcessReport {
  /** Its incarnation, as in the leases that it holds. */
  readonly owner: string;
  readonly label: string;
  readonly body: unknown;
}

/** A process that reported lately. */
export interface ProcessView extends ProcessReport {
  /** When it last did, by the store's clock. */
  readonly at: number;
  readonly agoMs: number;
}

export interface EffectFilter {
  readonly run?: string;
  /** The effect whose item journal has this number. */
  readonly item?: number;
  readonly role?: "effect" | "compensation";
  /** Only obligations, of the root with this journal number and of everything below it, in the order of undoing. */
  readonly root?: number;
  /** With `root`: only what the run with this journal number answers for, itself and everything below it; no surplus. */
  readonly below?: number;
  /** With `run`: from this position on. With `root`: from the run with this journal number on. */
  readonly from?: number;
  readonly status?: readonly string[];
  readonly minAgeMs?: number;
  /** Of a list of all: continue behind this one, by its {@link effectCursor}. */
  readonly after?: string;
  readonly limit?: number;
}

export interface GateFilter {
  readonly run?: string;
  readonly open?: boolean;
  /** Continue behind this one, by its {@link gateCursor}. */
  readonly after?: string;
  readonly limit?: number;
}

/** Where an effect stands in a list of all of them. */
export const effectCursor = ({ run, pos, sub }: Pick<EffectRow, "run" | "pos" | "sub">): string =>
  `${run}.${pos}.${sub}`;

/** Where a gate stands in every list of gates: by when it was opened. */
export const gateCursor = ({ openedAt, run, pos }: Pick<GateRow, "openedAt" | "run" | "pos">): string =>
  `${openedAt}.${run}.${pos}`;

/** The three numbers of such a cursor; of none, what stands before everything. */
export function placeIn(cursor: string | undefined): readonly [number, number, number] {
  if (cursor === undefined) return [0, 0, -1];
  const read = /^(\d{1,15})\.(\d{1,15})\.(\d{1,15})$/.exec(cursor);
  if (read === null) throw new TapeError("TAPE_BAD_INPUT", "this cursor is not one of this list's", { field: "after" });
  return [Number(read[1]), Number(read[2]), Number(read[3])];
}

export interface StoreSettings {
  readonly schema: number;
  readonly epoch: number;
  readonly durable: boolean;
  readonly facts: Readonly<Record<string, string | number | boolean>>;
}

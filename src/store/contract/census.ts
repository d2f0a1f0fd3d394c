import type { RunStatus } from "../../model/machines.ts";

/** Counts of the census and of due work stop here: more does not change what an operator does. */
export const maxCounted = 10_000;

/** Figures for operators, for autoscalers, and for processes that wake others. */
export interface CensusOps {
  /** How many items this reactor could claim now, counted up to `cap`, which is at most 10 000. */
  due(reactor: string, cap: number, tenant: string): Promise<number>;
  /** What operators watch of one tenant, in one query. */
  census(tenant: string): Promise<Census>;
}

/** Counts stop at 10 000. */
export interface Census {
  /** Reactors with due work. */
  readonly reactors: readonly ReactorBacklog[];
  /** Open runs by status, without WAITING: that would take a walk through all runs. */
  readonly runs: readonly { readonly status: RunStatus; readonly count: number }[];
  readonly inDoubt: readonly InDoubtCount[];
  /** Held leases. */
  readonly held: readonly { readonly kind: "run" | "item" | "name"; readonly count: number }[];
  /** How long the transaction has been open that holds the feed back; 0: none does. */
  readonly feedBlockedMs: number;
}

/** The due work of one reactor. */
export interface ReactorBacklog {
  /** The reactor. */
  readonly reactor: string;
  /** How many journals are due. */
  readonly due: number;
  /** How long the oldest has been due. */
  readonly lagMs: number;
}

/** Effects or obligations that wait for the reconciler or an operator. */
export interface InDoubtCount {
  /** Effects, or compensations. */
  readonly role: "effect" | "compensation";
  readonly status: "UNKNOWN" | "STUCK";
  /** How many. */
  readonly count: number;
  /** Since when the oldest is in this status. */
  readonly ageMs: number;
}

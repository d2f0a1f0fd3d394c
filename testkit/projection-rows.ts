import type { Change } from "../src/model/changes.ts";
import type { RunPhase } from "../src/model/machines.ts";
import type { JournalKind } from "../src/model/rows.ts";

/** The rows of the independent interpretation, without times. */
export interface RunState {
  journal: number;
  tenant: string;
  id: string;
  workflow: string;
  version: string | null;
  phase: RunPhase;
  cause: string | null;
  stuckFrom: RunPhase | null;
  inputHash: string;
  labels: string | null;
  outcome: string | null;
  parent: number | null;
  root: number;
  ended: boolean;
}
export interface LeaseState {
  kind: JournalKind;
  tenant: string;
  run: number;
  token: bigint;
  owner: string | null;
  nextReactor: string | null;
  notes: number;
  open: boolean;
  doomed: boolean;
  /** Only of runs: other claimants declare it with each term. */
  maxStallMs: number | null;
  /** It has a queue, starts later, or has a unique key. */
  queued: boolean;
}
type Stored<K extends Change["do"]> = {
  -readonly [F in keyof Extract<Change, { do: K }>]: Extract<Change, { do: K }>[F];
};
export type EffectState = Omit<Stored<"effect.create">, "do" | "source"> & {
  root: number;
  attempt: number;
  attemptToken: bigint | null;
  reason: string | null;
  outcome: string | null;
  uncertain: boolean;
};
export type GateState = Omit<Stored<"gate.create">, "do" | "callback"> & {
  callback?: string;
  status: string;
  value: string | null;
};
export type PublishedState = Omit<Stored<"published.put">, "do" | "max">;
export type ReplyState = Omit<Stored<"reply.create">, "do">;
export type TimerState = Omit<Stored<"timer.create">, "do" | "delayMs" | "until"> & { status: string };
export type BudgetState = Omit<Stored<"budget.create">, "do" | "cap"> & {
  cap: number | null;
  reserved: number;
  spent: number;
};
export type ClaimState = Omit<Stored<"business_key.claim">, "do"> & { tenant: string };

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
  parentPos: number | null;
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
  /** The first record and the first position of the run's current generation. */
  begins: number;
  beginsPos: number;
  /** Only of runs: other claimants declare it with each term. */
  maxStallMs: number | null;
  /** It has a queue, starts later, or has a unique key. */
  queued: boolean;
  /** Of a run that is pinned. */
  build?: string;
}
/** Restates the rule of the model: otherwise an error in it would repeat itself here. */
export const routed = ({ kind, build }: LeaseState, reactor: string | null): string | null =>
  kind === "run" && reactor === "recovery" && build !== undefined ? `recovery@${build}` : reactor;

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

/** A change in a message. */
export const show = (value: unknown): string =>
  JSON.stringify(value, (_key, one: unknown) => (typeof one === "bigint" ? `${one}` : one));

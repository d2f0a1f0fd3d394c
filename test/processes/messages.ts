import type { NewRecord } from "../../src/model/records.ts";

/** A command of a test to a worker process. Each gets one reply, in order. */
export type Command =
  /** Acquire the run and keep its lease. */
  | { readonly do: "take"; readonly run: string; readonly ttlMs: number }
  /** Wait for the named lease until it is held. */
  | { readonly do: "lead"; readonly name: string; readonly ttlMs: number }
  /** Write without checking the lease by the local clock, as a careless program would. */
  | { readonly do: "write"; readonly records: readonly NewRecord[] }
  | { readonly do: "writeAsBatch"; readonly records: readonly NewRecord[] }
  /** Read the current head first, so that only the token is wrong. */
  | { readonly do: "writeAtHead"; readonly records: readonly NewRecord[] }
  | { readonly do: "renew" }
  | { readonly do: "belief" }
  | { readonly do: "release" }
  /** For stopped-commit.ts: write, and stop before the commit. */
  | { readonly do: "stop" };

export interface Reply {
  /** "accepted", "held", a belief, or an error code. */
  readonly result: string;
  readonly token?: string;
  readonly reason?: string;
  readonly journal?: number;
}

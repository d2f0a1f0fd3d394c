import type { NewRecord } from "../../src/model/records.ts";

/** What a test says to a worker process, and what it answers: one answer for each question, in order. */
export type Question =
  /** Acquire the run, and keep its lease. */
  | { readonly do: "take"; readonly run: string; readonly ttlMs: number }
  /** Stand by for the named lease until it is ours. */
  | { readonly do: "lead"; readonly name: string; readonly ttlMs: number }
  /** Write without asking one's own clocks first, as a careless program would. */
  | { readonly do: "write"; readonly records: readonly NewRecord[] }
  | { readonly do: "writeAsBatch"; readonly records: readonly NewRecord[] }
  /** Look first where the journal ends now: only the token is wrong then. */
  | { readonly do: "writeAtHead"; readonly records: readonly NewRecord[] }
  | { readonly do: "renew" }
  | { readonly do: "belief" }
  | { readonly do: "release" }
  /** For the one that stops itself: write, and stop before the commit. */
  | { readonly do: "stop" };

export interface Answer {
  /** "accepted", "held", a belief, or the code of the refusal. */
  readonly say: string;
  readonly token?: string;
  readonly reason?: string;
  readonly journal?: number;
}

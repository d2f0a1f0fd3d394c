/** Where a process dies. The worker reports that it is there, and its parent kills it before it gets an answer. */
export type Point =
  | "step" // in a step, before the record that authorises the effect
  | "intended" // authorised, nothing sent yet
  | "sent" // the upstream has done it, and has not responded
  | "returned" // the response has arrived and is not recorded
  | "asleep" // in a sleep
  | "compensating"; // the upstream has compensated, and has not responded

export type Kind = "observed" | "idempotent" | "unobserved";

/** What a process is and does. Settings that are not here are the defaults. */
export interface WorkerSpec {
  /** A store's URL, or addresses of servers. */
  readonly store: string | readonly string[];
  readonly upstream: string;
  readonly name: "a" | "b";
  readonly kind: Kind;
  readonly dispatch: "inline" | "outbox";
  /** Fail after the effect, so that it is compensated. */
  readonly fails: boolean;
}

export type ToWorker = { readonly do: "start" | "finish" | "close"; readonly id: string };
export type FromWorker = { readonly say: "ready" } | { readonly say: "ended"; readonly outcome: string };

/** How long the run sleeps. Longer than it takes to start another process. */
export const sleepMs = 20_000;

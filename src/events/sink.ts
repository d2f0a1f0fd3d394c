import type { TapeEvent } from "./event.ts";

/**
 * How an event was received. `later`: not yet; its lane waits, at least `afterMs`, and nothing behind it counts.
 * `never`: the sink refuses this event, whenever it is sent. `pause`: the sink takes no more events until an operator
 * resumes it.
 */
export type Delivery =
  | "ok"
  | { readonly later: unknown; readonly afterMs?: number }
  | { readonly never: unknown; readonly code?: string }
  | { readonly pause: unknown };

/** What a sink gets with its events. */
export interface SendContext {
  /** Aborts when the fan-out loses its lease, stops, or has waited too long. */
  readonly signal: AbortSignal;
  /** Counted from 1 for the first of these events. */
  readonly attempt: number;
  /** The token of the fan-out's term. A receiver may refuse events with a lower one than it has seen. */
  readonly token: bigint;
}

/**
 * Where events go. `send` returns nothing if the sink has received all of them, or one delivery for each. An error means
 * later, for all of them.
 *
 * @example
 * const sink: Sink = { label: "ledger", send: async (events) => ledger.insert(events) };
 */
export interface Sink {
  /** A short name for logs, without secrets. */
  readonly label: string;
  /** How many events and bytes one call takes. Default 1 event and 1 MiB. An event that is larger is a dead letter. */
  readonly limits?: { readonly events?: number; readonly bytes?: number };
  /** Sends events; the order within a lane matters. */
  send(events: readonly TapeEvent[], context: SendContext): Promise<readonly Delivery[]> | Promise<void>;
  /** Releases connections, when the fan-out stops. */
  close?(): Promise<void>;
}

export const defaultBatchBytes = 1024 * 1024;

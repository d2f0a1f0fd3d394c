import type { TapeEvent } from "../event.ts";
import type { Delivery, SendContext, Sink } from "../sink.ts";

/** Receives events. It returns nothing if it has received all of them, or one delivery for each. */
export type EventHandler = (
  events: readonly TapeEvent[],
  context: SendContext,
) => undefined | readonly Delivery[] | Promise<readonly Delivery[]> | Promise<void>;

/** Options of a {@link functionSink}. */
export interface FunctionSinkOptions {
  /** For logs. Default: the name of the function. */
  readonly label?: string;
  /** Events in one call. Default 100. */
  readonly events?: number;
  /** Bytes in one call. Default 1 MiB. */
  readonly bytes?: number;
}

const defaultEvents = 100;

/**
 * A sink that calls a function of yours. An error means later: the same events come again, and nothing overtakes them.
 *
 * @example
 * const sink = functionSink(async (events) => { await ledger.insert(events); });
 */
export function functionSink(handler: EventHandler, options: FunctionSinkOptions = {}): Sink {
  const { label = handler.name || "function", events = defaultEvents, bytes } = options;
  return {
    label,
    limits: { events, ...(bytes !== undefined && { bytes }) },
    send: async (batch, context): Promise<readonly Delivery[]> =>
      (await handler(batch, context)) ?? batch.map((): Delivery => "ok"),
  };
}

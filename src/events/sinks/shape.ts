/** What the sinks of brokers read of an event: its attributes of CloudEvents, and the run in its data. */
export interface BrokerEvent {
  /** `<journal>:<seq>:<at>`, an inbox as `<journal>i:<seq>:<at>`. */
  readonly id: string;
  /** `/tape/<store>/<tenant>`. */
  readonly source: string;
  /** `dev.tape.<kind>`. */
  readonly type: string;
  /** The run. */
  readonly subject: string;
  /** The root run: what has to stay in order. */
  readonly partitionkey: string;
  readonly tapeepoch: number;
  /** An operator has sent a dead letter again. */
  readonly tapereplayed?: boolean;
  readonly data: { readonly run?: { readonly workflow: string } };
}

/** What became of an event. `later`: send it again, not before `afterMs`. `never`: about this event, so do not. */
export type Delivery = "ok" | { readonly later: unknown; readonly afterMs?: number } | { readonly never: unknown };

/** Which try of the same events it is, and under which token of the sink's lease. */
export interface SendContext {
  readonly signal: AbortSignal;
  readonly attempt: number;
  readonly token: bigint;
}

/** A receiver of events. */
export interface BrokerSink {
  readonly label: string;
  /** The largest batch. */
  readonly limits: { readonly events: number; readonly bytes: number };
  /** One delivery for each event; `undefined` if all were taken. Throws if nothing is known about any. */
  send(events: readonly BrokerEvent[], context: SendContext): Promise<readonly Delivery[] | undefined>;
  close(): Promise<void>;
}

/** The sink, and how much of its feed is under way at a time. */
export const sinkName = "ledger";
export const lanes = 4;
export const batch = 10;
/** The most that a takeover may repeat. Small, so that a broken bound shows. */
export const window = 200;

interface ProcessOrders {
  readonly url: string;
  readonly ttlMs: number;
  readonly worker: string;
  readonly log: string;
}

export interface FanoutOrders extends ProcessOrders {
  readonly receiver: string;
  /** How long a request may take. */
  readonly sendMs: number;
}

export interface WriterOrders extends ProcessOrders {
  /** Pause between two starts. */
  readonly everyMs: number;
}

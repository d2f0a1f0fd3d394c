import type { QueueDefinition } from "./queue.ts";

/** The queue in which a run waits for a slot. */
export interface QueueChoice {
  /** Default: the workflow's. */
  readonly queue?: QueueDefinition;
  /** Its key in the queue: limits per key and fair turns apply to it. Default: the workflow's. */
  readonly key?: string;
  /** From 1, served first, to 9. Default 5. */
  readonly priority?: number;
}

import { z } from "zod";
import { maxPriority, minPriority, onConflicts } from "./queue.ts";

/** When a run starts, and in which queue: fields of the record that creates it. */

const name = z.string().min(1);
/** Whole milliseconds, see records.ts. */
const wholeMs = z.int().nonnegative();

/** The queue of a run, its partition and its priority there. `weight`: of the key, in thousandths. */
export const queuedShape = z.strictObject({
  name,
  key: z.string(),
  priority: z.int().min(minPriority).max(maxPriority),
  weight: z.int().positive().exactOptional(),
});
export type QueuedData = z.infer<typeof queuedShape>;

export const startShape = {
  queue: queuedShape.exactOptional(),
  /** It does not start before this. */
  delayMs: wholeMs.exactOptional(),
  startAt: wholeMs.exactOptional(),
  /** How long it may wait in its queue. */
  expiresMs: wholeMs.exactOptional(),
  unique: z.strictObject({ key: name, onConflict: z.enum(onConflicts) }).exactOptional(),
  debounce: z.strictObject({ key: name, waitMs: wholeMs, maxWaitMs: wholeMs.exactOptional() }).exactOptional(),
};

import { z } from "zod";

const text = z.string();
const name = z.string().min(1);
const count = z.int().nonnegative();
const positiveMs = z.int().positive();

/** Why a scope ended: its function returned or threw, its handle was cancelled, or its time was over. */
export const scopeEnds = ["done", "failed", "cancelled", "timeout"] as const;
export type ScopeEnd = (typeof scopeEnds)[number];

/** The records of scopes: see records.ts for all kinds. */
export const scopeSchemas = {
  /** `again`: the scope at this position is open again, because the run is retried or forked; its time starts again. */
  "scope.opened": z.strictObject({
    pos: count,
    name,
    timeoutMs: positiveMs.exactOptional(),
    shielded: z.literal(true).exactOptional(),
    again: z.int().positive().exactOptional(),
  }),
  /**
   * The end of the scope at position `of`: from here on its operations are refused. `pos`: the operation that ended it;
   * for a time-out, which is none, the next position of its lane. The gates and timers that were open in it are
   * withdrawn with it.
   */
  "scope.closed": z.strictObject({
    pos: count,
    of: count,
    reason: z.enum(scopeEnds),
    detail: text.exactOptional(),
    gates: z.array(count).exactOptional(),
    timers: z.array(z.strictObject({ pos: count, purpose: name })).exactOptional(),
  }),
  /** The effect was not sent, and never will be: its scope has ended. */
  "effect.withdrawn": z.strictObject({ pos: count }),
  /** The armed obligations of the child that was started at `pos`, and of all runs below it, fall due. */
  "children.due": z.strictObject({ pos: count, reason: text }),
  /** Every obligation inside the failed saga at position `of` is compensated. */
  "saga.compensated": z.strictObject({ pos: count, of: count, obligations: count }),
} as const;

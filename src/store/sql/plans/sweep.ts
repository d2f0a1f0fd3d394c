import { type Plan, query, queryRow } from "../plan.ts";

/** First starts of a queue between two sweeps, and keys of one sweep. */
const everyStarts = 32;
const maxKeys = 200;
/** A key that has been empty for this long has lost its turn. */
const olderMs = 600_000;

/**
 * Deletes keys that have been empty for long, a few at a time, in the transaction of an admission. A key that is still
 * ahead in its turns or its rate stays: it would otherwise start from the front again. Begins after the key that was
 * admitted last, and continues with the first one.
 */
export function* sweepKeys(
  { id, vnow, started }: { readonly id: number; readonly vnow: number; readonly started: number },
  starts: number,
  lastKey: string,
): Plan<void> {
  if (Math.floor(started / everyStarts) === Math.floor((started + starts) / everyStarts)) return;
  for (const above of new Set([lastKey, ""])) {
    const until = (yield* queryRow("partition.sweep_range", { queue: id, above, limit: maxKeys }))?.until ?? null;
    if (until !== null) return void (yield* query("partition.sweep", { queue: id, above, until, vnow, olderMs }));
  }
}

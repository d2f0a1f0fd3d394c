import type { FeedPage, FeedRecord, Page } from "./contract/store.ts";

/**
 * A page of the feed. Where it is not full, the cursor moves over everything that was looked at: what is another tenant's
 * is never looked at again. `edge` is where the look ended, and whether that was as far as one goes.
 */
export function feedPageOf(
  records: Page<FeedRecord>,
  edge: { readonly cursor: string; readonly more: boolean },
): FeedPage {
  const last = records.at(-1);
  if (records.more === true && last !== undefined) return { records, cursor: last.cursor, more: true };
  return edge.more ? { records, cursor: edge.cursor, more: true } : { records, cursor: edge.cursor };
}

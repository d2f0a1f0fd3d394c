import type { FeedPage, FeedRecord, Page } from "./contract/store.ts";

/**
 * A page of the feed. If it is not full, its cursor skips everything that was scanned, so that other tenants' records
 * are scanned only once. `edge` is the position where the scan ended, and whether more records follow it.
 */
export function feedPageOf(
  records: Page<FeedRecord>,
  edge: { readonly cursor: string; readonly more: boolean },
): FeedPage {
  const last = records.at(-1);
  if (records.more === true && last !== undefined) return { records, cursor: last.cursor, more: true };
  return edge.more ? { records, cursor: edge.cursor, more: true } : { records, cursor: edge.cursor };
}

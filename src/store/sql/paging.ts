import type { Page } from "../contract/store.ts";
import { pageOf } from "../page.ts";
import type { Plan, QueryResult, Row } from "./plan.ts";
import type { ParamsOf, RowOf, StatementName } from "./statements.gen.ts";

/**
 * Pages are bounded in rows and in bytes: a page ends with the row that fills it, and has at least one. The database
 * stops there, so rows that are not returned are not read into memory. These columns of these statements may be large:
 */
export const payloads: { readonly [N in StatementName]?: readonly (keyof RowOf<N> & string)[] } = {
  "journal.page": ["body"],
  "feed.page": ["body"],
  "value.list": ["value"],
  "value.history": ["value"],
  "effect.list": ["args", "policy", "outcome"],
  "effect.newest": ["args", "policy", "outcome"],
  "effect.newest_of_run": ["args", "policy", "outcome"],
  "effect.newest_open": ["args", "policy", "outcome"],
  "effect.run": ["args", "policy", "outcome"],
  "effect.obligations": ["args", "policy", "outcome"],
  "gate.list": ["payload", "value"],
  "gate.open": ["payload", "value"],
  "gate.run": ["payload", "value"],
  "published.list": ["value"],
  "chunk.page": ["body"],
  "schedule.list": ["spec"],
  "schedule.due": ["spec"],
  "process.list": ["body"],
  "run.running": ["labels", "outcome"],
  "run.runnable": ["labels", "outcome"],
  "run.by_phase": ["labels", "outcome"],
  "run.descendants": ["labels", "outcome"],
  "run.by_prefix": ["labels", "outcome"],
  "run.in_doubt": ["labels", "outcome"],
  "run.by_label": ["labels", "outcome"],
  "run.unlisted": ["labels", "outcome"],
  "run.started": ["labels", "outcome"],
  "run.finished": ["labels", "outcome"],
  "run.progress": ["outcome"],
  "erase.page": ["body"],
  "retention.records": ["body"],
  "retention.chunks": ["body"],
  "retention.blobs": ["body"],
};

export const payloadsOf = (name: string): readonly string[] | undefined => payloads[name as StatementName];

/** Statements whose rows are read page by page. */
export type ListName = {
  [N in StatementName]: "limit" extends keyof ParamsOf<N> ? N : "pageBytes" extends keyof ParamsOf<N> ? N : never;
}[StatementName];

/** One page of a list. */
export function* queryPage<N extends ListName>(
  sql: N,
  params: ParamsOf<N> & { readonly limit: number; readonly pageBytes: number },
): Plan<Page<RowOf<N>>> {
  const result = (yield { sql, params }) as QueryResult<RowOf<N>>;
  return pageOf(result.rows, result.more === true || result.rows.length >= params.limit);
}

/** How many bytes of a page this row takes. */
export function sizeOfRow(row: Row, columns: readonly string[]): number {
  let size = 0;
  for (const column of columns) {
    const value = row[column];
    if (typeof value === "string") size += value.length;
  }
  return size;
}

/** The rows of one page, read one by one until it is full. */
export function cutPage(
  rows: Iterable<Row>,
  columns: readonly string[],
  pageBytes: number,
): QueryResult & { rows: Row[] } {
  const kept: Row[] = [];
  let bytes = 0;
  for (const row of rows) {
    kept.push(row);
    bytes += sizeOfRow(row, columns);
    if (bytes >= pageBytes) return { rows: kept, count: kept.length, more: true };
  }
  return { rows: kept, count: kept.length };
}

import type { Page } from "../contract/store.ts";
import { pageOf } from "../page.ts";
import type { Plan, QueryResult, Row } from "./plan.ts";

/**
 * Pages are bounded in rows and in bytes: a page ends with the row that fills it, and never holds less than one. The
 * database stops there, so that what is not delivered is not read into memory first. Which columns of which statements
 * hold what users may make large:
 */
export const payloads: Readonly<Record<string, readonly string[]>> = {
  "journal.page": ["body"],
  "feed.page": ["body"],
  "value.list": ["value"],
  "value.history": ["value"],
  "effect.list": ["args", "policy", "outcome"],
  "effect.run": ["args", "policy", "outcome"],
  "effect.obligations": ["args", "policy", "outcome"],
  "gate.list": ["payload", "value"],
  "gate.open": ["payload", "value"],
  "gate.run": ["payload", "value"],
  "schedule.list": ["spec"],
  "schedule.due": ["spec"],
  "process.list": ["body"],
  "run.running": ["labels", "outcome"],
  "run.runnable": ["labels", "outcome"],
  "run.by_phase": ["labels", "outcome"],
  "run.descendants": ["labels", "outcome"],
  "run.by_prefix": ["labels", "outcome"],
  "run.in_doubt": ["labels", "outcome"],
  "run.started": ["labels", "outcome"],
  "run.finished": ["labels", "outcome"],
  "run.progress": ["outcome"],
};

/** One page of a list. */
export function* queryPage(
  sql: string,
  params: Row & { readonly limit: number; readonly pageBytes: number },
): Plan<Page<Row>> {
  const answer: QueryResult = yield { sql, params };
  return pageOf(answer.rows, answer.more === true || answer.rows.length >= params.limit);
}

/** How much of a page this row takes. */
export function sizeOfRow(row: Row, columns: readonly string[]): number {
  let size = 0;
  for (const column of columns) {
    const value = row[column];
    if (typeof value === "string") size += value.length;
  }
  return size;
}

/** The rows of one page, read one after the other until it is full. */
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

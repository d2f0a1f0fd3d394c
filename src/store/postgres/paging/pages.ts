import { sqlFiles } from "../../sql/files.ts";
import { payloads } from "../../sql/paging.ts";
import type { QueryResult, Row } from "../../sql/plan.ts";

const around = sqlFiles(new URL("sql/", import.meta.url)).get("page.sql") ?? "";

/**
 * The statement of a list, bounded in bytes: it delivers rows up to the one that fills the page. The sizes are those that
 * stand beside a large value's address: a value that is not delivered is not read.
 */
export function boundedSource(name: string, source: string): string {
  const columns = payloads[name];
  if (columns === undefined) return source;
  const lines = source.split("\n").filter((line) => !line.startsWith("--"));
  const size = columns.map((column) => `coalesce(octet_length(a.${column}), 0)`).join(" + ");
  return around.replaceAll("%size%", size).replace("%list%", () => lines.join("\n").trim());
}

/** Says of a page whether it was full. */
export function boundedResult(answer: QueryResult, pageBytes: unknown): QueryResult {
  const last: Row | undefined = answer.rows.at(-1);
  if (typeof pageBytes !== "number" || last?.page_bytes === undefined) return answer;
  return Number(last.page_bytes) >= pageBytes ? { ...answer, more: true } : answer;
}

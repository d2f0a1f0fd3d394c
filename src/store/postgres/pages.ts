import { payloadsOf } from "../sql/paging.ts";
import type { QueryResult, Row } from "../sql/plan.ts";
import type { Macros } from "../sql/statements.ts";

/**
 * The statement of a list, bounded in bytes: it delivers rows up to the one that fills the page. The sizes are those that
 * stand beside a large value's address: a value that is not delivered is not read.
 */
export function boundedSource(name: string, source: string, macros: Macros): string {
  const columns = payloadsOf(name);
  if (columns === undefined) return source;
  const lines = source.split("\n").filter((line) => !line.startsWith("--"));
  const size = columns.map((column) => `coalesce(octet_length(a.${column}), 0)`).join(" + ");
  const page = macros.get("%page%")!.replaceAll("%size%", size);
  return `-- read\n${page.replace("%list%", () => lines.join("\n").trim())}`;
}

/** Says of a page whether it was full. */
export function boundedResult(answer: QueryResult, pageBytes: unknown): QueryResult {
  const last: Row | undefined = answer.rows.at(-1);
  if (typeof pageBytes !== "number" || last?.page_bytes === undefined) return answer;
  return Number(last.page_bytes) >= pageBytes ? { ...answer, more: true } : answer;
}

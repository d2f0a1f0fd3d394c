import { payloadsOf } from "../sql/paging.ts";
import type { QueryResult, Row } from "../sql/plan.ts";
import type { Macros } from "../sql/statements.ts";

/**
 * The statement of a list, bounded in bytes: it returns rows up to the one that fills the page. Sizes are read from the
 * pointer to a large value, so a value that is not returned is not read.
 */
export function boundedSource(name: string, source: string, macros: Macros): string {
  const columns = payloadsOf(name);
  if (columns === undefined) return source;
  const lines = source.split("\n").filter((line) => !line.startsWith("--"));
  const size = columns.map((column) => `coalesce(octet_length(a.${column}), 0)`).join(" + ");
  const page = macros.get("%page%")!.replaceAll("%size%", size);
  return `-- read\n${page.replace("%list%", () => lines.join("\n").trim())}`;
}

/** Marks whether a page was full. */
export function boundedResult(result: QueryResult, pageBytes: unknown): QueryResult {
  const last: Row | undefined = result.rows.at(-1);
  if (typeof pageBytes !== "number" || last?.page_bytes === undefined) return result;
  return Number(last.page_bytes) >= pageBytes ? { ...result, more: true } : result;
}

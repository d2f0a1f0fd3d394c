import type { Page, RunFilter } from "../../contract/store.ts";
import { pageOf } from "../../page.ts";
import { queryPage } from "../paging.ts";
import { type Plan, queryRows } from "../plan.ts";
import type { ParamsOf, RowOf } from "../statements.gen.ts";

type RunRow = RowOf<"run.by_label">;
/** A key and the values that fit, of which a run has one. */
export type LabelCondition = readonly [key: string, values: readonly string[]];

/** Runs with a label are counted up to this number: a list walks the rarest label, or a status if all are frequent. */
const counted = 1_000;

export function labelConditions({ label, labels = {} }: RunFilter): LabelCondition[] {
  const conditions = Object.entries(labels).map(
    ([key, values]): LabelCondition => [key, typeof values === "string" ? [values] : [...new Set(values)]],
  );
  return label === undefined ? conditions : [...conditions, [label.key, [label.value]]];
}

type LabelledParams = Omit<ParamsOf<"run.by_label">, "key" | "value" | "others"> &
  ParamsOf<"run.unlisted"> & { readonly limit: number; readonly pageBytes: number };

/**
 * The newest runs with these labels: walks one label and looks up the others. undefined: all labels are frequent, and
 * the list of a status is the shorter way.
 */
export function* byLabels(
  conditions: readonly LabelCondition[],
  params: LabelledParams,
  byStatus: boolean,
): Plan<Page<RunRow> | undefined> {
  const choice = conditions.length > 1 || byStatus ? yield* rarestOf(conditions, params.tenant as string) : undefined;
  if (byStatus && choice!.runs >= counted) return undefined;
  const walked = choice?.condition ?? conditions[0]!;
  const rest = conditions.filter((condition) => condition !== walked);
  const others = rest.length === 0 ? null : JSON.stringify(rest);
  // First, because a run may be listed between the two queries: then it is found twice, but not missed.
  const pages: Page<RunRow>[] = [yield* queryPage("run.unlisted", params)];
  const [key, values] = walked;
  for (const value of values) pages.push(yield* queryPage("run.by_label", { ...params, key, value, others }));
  return mergedPages(pages, params.limit);
}

function* rarestOf(
  conditions: readonly LabelCondition[],
  tenant: string,
): Plan<{ readonly condition: LabelCondition; readonly runs: number }> {
  const pairs = JSON.stringify(conditions.flatMap(([key, values]) => values.map((value) => [key, value])));
  const rows = yield* queryRows("label.counts", { tenant, pairs, limit: counted });
  const counts = conditions.map((condition) => {
    const runs = rows.filter(({ key, value }) => condition[0] === key && condition[1].includes(value!));
    return { condition, runs: runs.reduce((sum, row) => sum + Number(row.runs), 0) };
  });
  return counts.reduce((rarest, one) => (one.runs < rarest.runs ? one : rarest));
}

/** The newest of several lists that are each newest first. */
export function mergedPages(pages: readonly Page<RunRow>[], limit: number): Page<RunRow> {
  let more = false;
  /** After the last row of a full page its list may have more; rows of other lists older than that must wait. */
  let edge = 0;
  for (const page of pages) {
    if (page.more !== true) continue;
    more = true;
    edge = Math.max(edge, Number(page.at(-1)?.journal));
  }
  const newest = [...new Map(pages.flat().map((row) => [Number(row.journal), row])).values()]
    .filter(({ journal }) => Number(journal) >= edge)
    .sort((a, b) => Number(b.journal) - Number(a.journal));
  return pageOf(newest.slice(0, limit), more || newest.length > limit);
}

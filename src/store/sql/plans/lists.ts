import { TapeError } from "../../../model/errors.ts";
import type { Limits } from "../../../model/limits.ts";
import type { RunPhase } from "../../../model/machines.ts";
import type { BudgetSummary, Page, RunFilter, RunRate, RunView } from "../../contract/store.ts";
import { budgetRowOf, runViewOf, statusOf } from "../../decode-rows.ts";
import { leaseViewOf } from "../../lease-rules.ts";
import { pageOf } from "../../page.ts";
import { pageLimit } from "../../validate/entry.ts";
import { queryPage } from "../paging.ts";
import { type Plan, queryRow, queryRows } from "../plan.ts";
import type { ParamsOf, RowOf } from "../statements.gen.ts";
import { byLabels, labelConditions, mergedPages } from "./label-lists.ts";

/** Lists and summaries for operators: each walks one index in its order and stops after the page. */

/** Only the budgets of this many of the newest runs with one are read. */
const maxBudgets = 10_000;
/** Maximum number of runs counted in all intervals together, divided equally among them: some tenths of a second. */
const maxCounted = 600_000;
const noBound = Number.MAX_SAFE_INTEGER;
const lastLetter = 0x10ffff;

type RunRow = RowOf<"run.started">;

export function* runsPlan(tenant: string, filter: RunFilter, limits: Limits): Plan<Page<RunView>> {
  const rows = yield* rowsOf(tenant, filter, limits);
  if (rows.length === 0) return [];
  const journals = JSON.stringify(rows.map(({ journal }) => Number(journal)));
  const leases = new Map((yield* queryRows("leases.shown", { journals })).map((row) => [Number(row.journal), row]));
  const views = rows.flatMap((row) => {
    const lease = leases.get(Number(row.journal)); // undefined: deleted between the two queries
    return lease === undefined ? [] : [runViewOf(row, leaseViewOf(lease))];
  });
  return pageOf(views, rows.more === true);
}

/** By the narrowest index that the filter allows; its other conditions are checked row by row. */
function* rowsOf(tenant: string, filter: RunFilter, limits: Limits): Plan<Page<RunRow>> {
  const { before, below, prefix, inDoubt = false, workflow = null, status } = filter;
  const { startedSince = null, startedUntil = null, endedSince = null, endedUntil = null } = filter;
  const conditions = labelConditions(filter);
  const labels = conditions.length === 0 ? null : JSON.stringify(conditions);
  const few = {
    ...{ tenant, workflow, labels, status: status?.join(",") ?? null, limit: pageLimit(filter.limit, limits) },
    pageBytes: limits.pageBytes,
  };
  const started = { startedSince, startedUntil };
  const ended = { endedSince, endedUntil };
  if (below !== undefined) {
    return yield* queryPage("run.descendants", {
      ...few,
      ...started,
      ...ended,
      inDoubt,
      root: below,
      before: before ?? null,
    });
  }
  const byPrefix = prefix !== undefined && prefix !== "";
  const inTime = [startedSince, startedUntil, endedSince, endedUntil].some((bound) => bound !== null);
  const indexed = !inTime && !byPrefix && !inDoubt && status?.every(isIndexed) === true;
  if (labels !== null && (byPrefix || !inDoubt)) {
    const range = byPrefix ? { lower: prefix, upper: upperOf(prefix, limits) } : { lower: null, upper: null };
    const request = { ...few, ...started, ...ended, ...range, inDoubt, before: before ?? noBound };
    const page = yield* byLabels(conditions, request, indexed);
    if (page !== undefined) return page;
  }
  if (byPrefix) {
    // By prefix the list ascends, so the page starts after the cursor's id: no id contains a NUL, so none lies between
    // an id and the same id followed by U+0001.
    const lower = before === undefined ? prefix : `${String((yield* placeOf(tenant, before)).id)}\u0001`;
    const upper = upperOf(prefix, limits);
    return yield* queryPage("run.by_prefix", { ...few, ...started, ...ended, inDoubt, lower, upper });
  }
  if (inDoubt) return yield* queryPage("run.in_doubt", { ...few, ...started, ...ended, before: before ?? noBound });
  if (indexed) {
    const { status: _status, ...any } = few;
    return yield* byStatus(new Set(status), { ...any, before: before ?? noBound });
  }
  const byStart = !inTime || startedSince !== null || startedUntil !== null;
  const column = byStart ? "created_at" : "ended_at";
  const [since, until] = byStart ? [startedSince, startedUntil] : [endedSince, endedUntil];
  const edge = before === undefined ? noBound : Number((yield* placeOf(tenant, before))[column] ?? noBound);
  const range = { since: since ?? 0, through: Math.min(edge, (until ?? noBound) - 1), before: before ?? noBound, edge };
  return byStart
    ? yield* queryPage("run.started", { ...few, ...range, ...ended, inDoubt })
    : yield* queryPage("run.finished", { ...few, ...range, ...started, inDoubt });
}

/**
 * Most runs are COMPLETED, and WAITING is the absence of a holder and a reactor: both would take a walk through all
 * runs. QUEUED runs are listed by their queues.
 */
const isIndexed = (status: string): boolean => !["COMPLETED", "WAITING", "QUEUED"].includes(status);

/** The newest of each status, merged. */
function* byStatus(
  statuses: ReadonlySet<string>,
  few: Omit<ParamsOf<"run.by_phase">, "phase"> & { readonly limit: number; readonly pageBytes: number },
): Plan<Page<RunRow>> {
  const pages: Page<RunRow>[] = [];
  for (const status of statuses) {
    if (status === "RUNNING") pages.push(yield* queryPage("run.running", few));
    else if (status === "RUNNABLE")
      pages.push(yield* queryPage("run.runnable", few), yield* queryPage("run.runnable_pinned", few));
    else pages.push(yield* queryPage("run.by_phase", { ...few, phase: status }));
  }
  return mergedPages(pages, few.limit);
}

/** The row after which a page continues: a run, or one that has been deleted since. */
function* placeOf(tenant: string, journal: number): Plan<RowOf<"tombstone.list_key">> {
  const row =
    (yield* queryRow("run.list_key", { tenant, journal })) ??
    (yield* queryRow("tombstone.list_key", { tenant, journal }));
  if (row !== undefined) return row;
  const message = "no run has the number in `before`: restart the list";
  throw new TapeError("TAPE_NOT_FOUND", message, { field: "before" });
}

/** A bound above every name with this prefix. */
export const upperOf = (prefix: string, limits: Limits): string =>
  behind(prefix) ?? String.fromCodePoint(lastLetter).repeat(limits.nameLength + 1);

/** The first text after all texts with this prefix, in the order of code points; undefined: there is none. */
function behind(prefix: string): string | undefined {
  const letters = [...prefix];
  while (letters.length > 0) {
    const last = letters.pop()!.codePointAt(0)!;
    if (last === lastLetter) continue;
    const next = last + 1 === 0xd800 ? 0xe000 : last + 1; // surrogates are no characters
    return letters.join("") + String.fromCodePoint(next);
  }
  return undefined;
}

export function* spendPlan(tenant: string, limit: number): Plan<BudgetSummary> {
  const rows = yield* queryRows("budget.open", { tenant, limit: maxBudgets });
  const open = rows.filter(({ ended_at }) => ended_at === null);
  const budgets = open.map((row) => ({
    ...budgetRowOf(row),
    runId: String(row.run_id),
    workflow: String(row.workflow),
    status: statusOf(row.phase as RunPhase, row.lease_owner !== null, row.lease_next_reactor !== null, row.slot),
  }));
  const capped = Map.groupBy(
    budgets.filter(({ cap }) => cap !== null),
    ({ unit }) => unit,
  );
  const counted = Map.groupBy(
    budgets.filter(({ cap }) => cap === null),
    ({ unit }) => unit,
  );
  const units = [...capped, ...counted].map(([unit, of]) => {
    const sum = (what: "cap" | "reserved" | "spent"): number =>
      of.reduce((all, budget) => Math.min(all + (budget[what] ?? 0), Number.MAX_SAFE_INTEGER), 0);
    const cap = of[0]!.cap === null ? null : sum("cap");
    return { unit, runs: of.length, cap, reserved: sum("reserved"), spent: sum("spent") };
  });
  const byShare = budgets.toSorted((a, b) => shareOf(b) - shareOf(a) || b.run - a.run || (a.unit < b.unit ? -1 : 1));
  return {
    budgets: byShare.slice(0, limit),
    units: units.toSorted((a, b) => Number(a.unit > b.unit) - Number(a.unit < b.unit)),
    more: rows.length === maxBudgets,
  };
}

/** A cap of zero is exhausted from the start; without a cap nothing can be exhausted. */
function shareOf({ cap, reserved, spent }: { cap: number | null; reserved: number; spent: number }): number {
  if (cap === null) return 0;
  return cap === 0 ? 1 : (reserved + spent) / cap;
}

export function* ratePlan(tenant: string, since: number, sizeMs: number, buckets: number): Plan<RunRate[]> {
  const limit = Math.floor(maxCounted / buckets);
  const params = { tenant, since, size: sizeMs, buckets, limit };
  return (yield* queryRows("run.rate", params)).map((row) => {
    const [started, ended] = [Number(row.started), Number(row.ended)];
    const more = Math.max(started, ended) === limit;
    return { at: Number(row.at), started, ended, failed: Number(row.failed), more };
  });
}

import type { Limits } from "../../../model/limits.ts";
import type { FeedPage } from "../../contract/store.ts";
import { feedRecordOf } from "../../decode-rows.ts";
import { feedPageOf } from "../../feed.ts";
import type { FeedTail, Span } from "../../feed-tail.ts";
import { mapPage } from "../../page.ts";
import { queryPage } from "../paging.ts";
import { type Plan, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";

/** The feed of a store whose records are numbered in commit order. */
export function* feedPlan(
  after: number,
  limit: number,
  tenant: string | undefined,
  { limits, tail }: { readonly limits: Limits; readonly tail: FeedTail },
): Plan<FeedPage> {
  // The end first: later commits of other processes are after it, and are not skipped.
  const newest = Number((yield* queryRow("feed.frontier"))?.id ?? 0);
  const end = Math.max(after, newest);
  type Rest = { readonly edge: number; readonly more: boolean };
  const within = function* (from: number, upTo: number, rest: (edge: number) => Rest): Plan<FeedPage> {
    const params = { after: from, edge: upTo, tenant: tenant ?? null, limit, pageBytes: limits.pageBytes };
    const records = mapPage(yield* queryPage("feed.page", params), (row) => feedRecordOf(row, String(row.id)));
    const { edge, more } = rest(upTo);
    return feedPageOf(records, { cursor: String(edge), more });
  };
  if (tenant === undefined) return yield* within(after, end, (edge) => ({ edge, more: false }));
  const upTo = (from: number, max: number): number => Math.min(max, from + limits.feedScan);
  const known = yield* extendTail(tail, newest, limits.feedScan);
  if (!tail.reaches(after)) return yield* within(after, upTo(after, end), (edge) => ({ edge, more: edge < end }));
  /** Whether the tenant has more records between this position and the tail's edge. */
  const rest = (edge: number): Rest =>
    tail.next(tenant, edge) === undefined
      ? { edge: Math.max(edge, known), more: known < newest }
      : { edge, more: true };
  const next = tail.next(tenant, after);
  if (next !== undefined) return yield* within(next.first - 1, upTo(next.first - 1, next.last), rest);
  const { edge, more } = rest(after);
  return feedPageOf([], { cursor: String(edge), more });
}

/** How many scans the tail may be behind before it restarts at the end: there was no reader for long. */
const maxBehind = 20;

/** Extends the tail by a bounded scan from its edge. Returns the position up to which everything is known. */
function* extendTail(tail: FeedTail, end: number, scan: number): Plan<number> {
  const { edge } = tail;
  if (edge === undefined || edge > end || end - edge > maxBehind * scan) {
    tail.begin(end);
    return end;
  }
  if (edge === end) return end;
  const to = Math.min(end, edge + scan);
  tail.add(to, spansOf(yield* queryRows("feed.tenants", { after: edge, edge: to })));
  return to;
}

export const spansOf = (rows: readonly RowOf<"feed.tenants">[]): ReadonlyMap<string, Span> =>
  new Map(rows.map((row) => [String(row.tenant), { first: Number(row.first), last: Number(row.last) }]));

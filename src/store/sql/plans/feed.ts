import type { Limits } from "../../../model/limits.ts";
import type { FeedPage } from "../../contract.ts";
import { feedPageOf } from "../../feed.ts";
import { mapPage } from "../../page.ts";
import { feedRecordOf } from "../../rows.ts";
import { askPage } from "../paging.ts";
import { askRow, type Plan } from "../plan.ts";

/** The feed of a store whose records are numbered in the order of their commits. */
export function* feedPlan(after: number, limit: number, tenant: string | undefined, limits: Limits): Plan<FeedPage> {
  // The end first: what another process commits after this look is behind it, and is not passed over.
  const end = Math.max(after, Number((yield* askRow("feed.edge"))?.id ?? 0));
  const edge = tenant === undefined ? end : Math.min(end, after + limits.feedScan);
  const params = { after, edge, tenant: tenant ?? null, limit, pageBytes: limits.pageBytes };
  const records = mapPage(yield* askPage("feed.page", params), (row) => feedRecordOf(row, String(row.id)));
  return feedPageOf(records, { cursor: String(edge), more: edge < end });
}

import { type BuildRow, supersededBy, workflowsOfOthers } from "../../../model/build.ts";
import { TapeError } from "../../../model/errors.ts";
import type { Limits } from "../../../model/limits.ts";
import { notFound } from "../../../model/not-found.ts";
import type { AuditInfo, BuildView, Page, PinnedRun } from "../../contract/store.ts";
import { pageOf } from "../../page.ts";
import { pageLimit } from "../../validate/entry.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { wakeOf } from "./append.ts";
import { recordOperatorAction } from "./service.ts";

/** A drained build that no process has reported for this long is forgotten. */
const forgetAfterMs = 30 * 24 * 3_600_000;
const forgottenAtOnce = 100;

const rowOf = (row: RowOf<"build.names">): BuildRow => ({
  build: row.build,
  workflows: JSON.parse(row.workflows) as string[],
  current: Boolean(row.current),
});

export function* buildRowsPlan(tenant: string): Plan<BuildRow[]> {
  return (yield* queryRows("build.names", { tenant })).map(rowOf);
}

export function* reportBuildPlan(
  limits: Limits,
  tenant: string,
  build: string,
  workflows: readonly string[],
): Plan<{ readonly leaves: string[] }> {
  const known = yield* buildRowsPlan(tenant);
  if (!known.some((row) => row.build === build)) yield* makeRoom(limits, tenant);
  yield* query("build.see", { tenant, build, workflows: JSON.stringify([...workflows].sort()) });
  return { leaves: workflowsOfOthers(build, workflows, known) };
}

function* makeRoom({ builds }: Limits, tenant: string): Plan<void> {
  const count = function* (): Plan<number> {
    return Number((yield* queryRow("build.count", { tenant }))?.n);
  };
  yield* query("build.forget", { tenant, olderMs: forgetAfterMs, limit: forgottenAtOnce });
  if ((yield* count()) < builds) return;
  yield* query("build.forget", { tenant, olderMs: 60_000, limit: forgottenAtOnce });
  if ((yield* count()) < builds) return;
  throw new TapeError("TAPE_TOO_LARGE", `${builds} builds with live runs or processes is the limit`, {
    limit: "builds",
  });
}

export function* setCurrentBuildPlan(
  context: PlanContext,
  tenant: string,
  build: string,
  audit: AuditInfo,
): Plan<BuildView> {
  const known = yield* buildRowsPlan(tenant);
  const superseded = supersededBy(build, known);
  for (const other of superseded) yield* query("build.current", { tenant, build: other, current: false });
  if ((yield* queryRows("build.current", { tenant, build, current: true })).length === 0)
    throw notFound("build", build);
  const detail = { tenant, build, ...(superseded.length > 0 && { instead: superseded }) };
  yield* recordOperatorAction("build.current", audit, detail);
  context.wake(wakeOf("recovery", tenant));
  const [view] = yield* queryRows("build.list", { tenant, build, limit: 1 });
  return buildViewOf(view!);
}

const buildViewOf = (row: RowOf<"build.list">): BuildView => ({
  ...rowOf(row),
  live: Number(row.live),
  firstAt: Number(row.first_at),
  seenAt: Number(row.seen_at),
});

export function* buildsPlan(
  tenant: string,
  { build, limit }: { readonly build?: string; readonly limit?: number },
  limits: Limits,
): Plan<Page<BuildView>> {
  const max = pageLimit(limit, limits);
  const rows = yield* queryRows("build.list", { tenant, build: build ?? null, limit: max + 1 });
  return pageOf(rows.slice(0, max).map(buildViewOf), rows.length > max);
}

export function* buildRunsPlan(
  tenant: string,
  build: string,
  { above = 0, limit }: { readonly above?: number; readonly limit?: number },
  limits: Limits,
): Plan<Page<PinnedRun>> {
  const max = pageLimit(limit, limits);
  const rows = yield* queryRows("build.runs", { tenant, build, above, limit: max + 1 });
  const runs = rows.map(({ journal, id, workflow }) => ({ journal: Number(journal), id: String(id), workflow }));
  return pageOf(runs.slice(0, max), runs.length > max);
}

export function* isDrainedPlan(tenant: string, build: string): Plan<boolean> {
  return !(yield* queryRow("build.live", { tenant, build }))?.live;
}

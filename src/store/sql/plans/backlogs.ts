import { defined } from "../../../base/defined.ts";
import { type BuildClaim, reactorOf } from "../../../model/build.ts";
import type { FindRequest, UnservedWorkflow } from "../../contract/store.ts";
import { type Plan, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { Findings, type FoundRow } from "./findings.ts";

/**
 * Journals that wait for a reactor are in one backlog per tenant and workflow, and held ones likewise. A query names its
 * backlogs; one for all backlogs first lists them, and takes from each tenant in turn.
 */

/** Maximum number of backlogs in one query; a tenant beyond it waits for the next. */
const maxBacklogs = 1_000;
/** Items are in the backlog without a name. */
const unnamed = "";
const itemReactors = ["reconciler", "outbox", "compensation"] as const;

/** Workflows by tenant. */
type Backlogs = ReadonlyMap<string, readonly string[]>;
type BacklogRequest = { readonly tenant?: string | undefined; readonly workflows?: readonly string[] | undefined };

function* backlogsOf(nextReactor: string | undefined, { tenant, workflows }: BacklogRequest): Plan<Backlogs> {
  if (tenant !== undefined && workflows !== undefined) return new Map([[tenant, [unnamed, ...workflows]]]);
  const where = { tenant: tenant ?? null, limit: maxBacklogs };
  const rows =
    nextReactor === undefined
      ? yield* queryRows("lease.holders", where)
      : yield* queryRows("lease.backlogs", { ...where, nextReactor });
  const backlogs = new Map<string, string[]>();
  for (const row of rows) {
    const workflow = String(row.workflow);
    if (workflows !== undefined && workflow !== unnamed && !workflows.includes(workflow)) continue;
    const of = String(row.tenant);
    backlogs.set(of, [...(backlogs.get(of) ?? []), workflow]);
  }
  return backlogs;
}

/**
 * Journals that could be claimed now, with their callees if a share needs them. Each is then claimed in its own
 * transaction: one bad item never blocks others.
 */
export function* findPlan(request: FindRequest): Plan<ReadonlyMap<number, string>> {
  const { nextReactor, limit, nonce, preload, kind: itemKind } = request;
  const { owner } = request.claimant;
  const build = request.build?.build ?? null;
  const kind = request.workflows === undefined ? (itemKind ?? null) : "run";
  const where: BacklogRequest = { tenant: request.tenant, workflows: itemKind === "item" ? [] : request.workflows };
  // Terms that this very find acquired come first: its response may have been lost.
  const held = yield* backlogsOf(undefined, where);
  const found = new Findings(request.share);
  yield* found.add(
    yield* fromEach(held, limit, (backlog) => queryRows("lease.by_nonce", { ...backlog, owner, nonce })),
  );
  if (request.only === "queues") return found.callees;
  if (found.size < limit) {
    const backlogs = yield* backlogsOf(nextReactor, where);
    const due = (of: Backlogs, reactor: string, room: number, full: string | null) =>
      fromEach(of, room, (backlog, max) =>
        queryRows("lease.due", { ...backlog, nextReactor: reactor, kind, full, limit: max }),
      );
    const own = pinnedBacklog(request);
    yield* found.fill(limit - found.size, (room, full) =>
      own === undefined
        ? due(backlogs, nextReactor, room, full)
        : inTurn([withoutLeft(backlogs, request.build), own.backlogs], room, (of) =>
            due(of, of === own.backlogs ? own.reactor : nextReactor, room, full),
          ),
    );
  }
  const room = Math.min(limit - found.size, request.staleLimit ?? limit);
  if (room > 0 && request.staleOf.length > 0) {
    const staleOf = request.staleOf.join(",");
    yield* found.fill(room, (of, full) =>
      fromEach(held, of, (backlog, max) =>
        queryRows("lease.stale", { ...backlog, staleOf, kind, build, full, limit: max }),
      ),
    );
  }
  const maxPreloaded = Math.min(limit - found.size, preload?.limit ?? 0);
  if (preload !== undefined && maxPreloaded > 0) {
    const served = request.workflows === undefined ? null : JSON.stringify(request.workflows);
    const tenants = yield* tenantsOf(request.tenant, "timer.tenants");
    const find = (tenant: string): Plan<readonly FoundRow[]> =>
      queryRows("lease.preload", { aheadMs: preload.withinMs, tenant, build, served, limit: maxPreloaded });
    yield* found.add(yield* inTurn(tenants, maxPreloaded, find));
  }
  return found.callees;
}

/** Where runs wait that are pinned to the build of the request; undefined: it has none. */
function pinnedBacklog({
  tenant,
  nextReactor,
  build: claim,
}: Pick<FindRequest, "tenant" | "nextReactor" | "build">):
  | { readonly reactor: string; readonly backlogs: Backlogs }
  | undefined {
  const reactor = claim === undefined ? nextReactor : reactorOf(nextReactor, claim.build)!;
  if (claim === undefined || tenant === undefined || reactor === nextReactor) return undefined;
  return { reactor, backlogs: new Map([[tenant, claim.pinned]]) };
}

/** Without the workflows whose new runs another build takes. */
function withoutLeft(backlogs: Backlogs, claim: BuildClaim | undefined): Backlogs {
  const leaves = claim?.leaves ?? [];
  if (leaves.length === 0) return backlogs;
  return new Map([...backlogs].map(([of, names]) => [of, names.filter((name) => !leaves.includes(name))]));
}

type Backlog = { readonly tenant: string; readonly workflows: string };

function* fromEach(
  backlogs: Backlogs,
  limit: number,
  find: (backlog: Backlog, limit: number) => Plan<readonly FoundRow[]>,
): Plan<readonly FoundRow[]> {
  const findOf = (tenant: string) => find({ tenant, workflows: JSON.stringify(backlogs.get(tenant)) }, limit);
  return yield* inTurn([...backlogs.keys()], limit, findOf);
}

/** One row of each source in turn, until there are enough: a long backlog of one tenant does not delay the others. */
export function* inTurn<S, R>(
  sources: readonly S[],
  limit: number,
  find: (source: S) => Plan<readonly R[]>,
): Plan<readonly R[]> {
  const lists: (readonly R[])[] = [];
  for (const source of sources) lists.push(yield* find(source));
  if (lists.length <= 1) return lists[0] ?? [];
  const maxLength = Math.max(...lists.map(({ length }) => length));
  const rows: R[] = [];
  for (let k = 0; k < maxLength && rows.length < limit; k++) {
    for (const list of lists) if (k < list.length && rows.length < limit) rows.push(list[k]!);
  }
  return rows;
}

/** The tenants whose timers or schedules to query. */
export function* tenantsOf(tenant: string | undefined, sql: "timer.tenants" | "schedule.tenants"): Plan<string[]> {
  if (tenant !== undefined) return [tenant];
  return (yield* queryRows(sql, { limit: maxBacklogs })).map((row) => String(row.tenant));
}

type Few = { readonly limit: number; readonly pageBytes: number };

/** Due timers, oldest first within each tenant. */
export function* dueTimersPlan(few: Few, tenant: string | undefined): Plan<readonly RowOf<"timer.due">[]> {
  const tenants = yield* tenantsOf(tenant, "timer.tenants");
  return yield* inTurn(tenants, few.limit, (of) => queryRows("timer.due", { tenant: of, ...few }));
}

/** Due schedules, oldest first within each tenant. */
export function* dueSchedulesPlan(few: Few, tenant: string | undefined): Plan<readonly RowOf<"schedule.due">[]> {
  const tenants = yield* tenantsOf(tenant, "schedule.tenants");
  return yield* inTurn(tenants, few.limit, (of) => queryRows("schedule.due", { tenant: of, ...few }));
}

export function* agendaPlan(
  tenant?: string,
  workflows?: readonly string[],
  queues: readonly string[] = [],
  claim?: BuildClaim,
): Plan<readonly RowOf<"agenda">[]> {
  const backlogs: string[][] = [];
  const ask = function* (reactor: string, where: BacklogRequest): Plan<void> {
    const found = yield* backlogsOf(reactor, where);
    for (const [of, names] of found) for (const workflow of names) backlogs.push([reactor, of, workflow]);
  };
  const allOf = workflows === undefined ? tenant : undefined;
  const left = workflows?.filter((name) => !claim?.leaves?.includes(name));
  if (allOf === undefined) yield* ask("recovery", { tenant, workflows: left });
  const own = pinnedBacklog({ nextReactor: "recovery", ...defined({ tenant, build: claim }) });
  for (const workflow of own?.backlogs.get(tenant!) ?? []) backlogs.push([own!.reactor, tenant!, workflow]);
  for (const reactor of itemReactors) yield* ask(reactor, { tenant, workflows: tenant === undefined ? undefined : [] });
  const held = allOf === undefined ? yield* backlogsOf(undefined, { tenant, workflows }) : new Map<string, string[]>();
  const holders = [...held].flatMap(([of, names]) => names.map((workflow) => [of, workflow]));
  const tenants = new Set(yield* tenantsOf(tenant, "timer.tenants"));
  for (const name of yield* tenantsOf(tenant, "schedule.tenants")) tenants.add(name);
  return yield* queryRows("agenda", {
    allOf: allOf ?? null,
    build: claim?.build ?? null,
    limit: maxBacklogs,
    backlogs: JSON.stringify(backlogs),
    holders: JSON.stringify(holders),
    tenants: JSON.stringify([...tenants]),
    queues: JSON.stringify(tenant === undefined ? [] : queues.map((name) => [tenant, name])),
  });
}

export function* unservedPlan(
  served: readonly string[],
  minLagMs: number,
  tenant?: string,
  claim?: BuildClaim,
): Plan<UnservedWorkflow[]> {
  const filter = { tenant: tenant ?? null, limit: maxBacklogs };
  const rows = [
    ...(yield* queryRows("lease.backlogs", { nextReactor: "recovery", ...filter })),
    ...(yield* queryRows("lease.holders", filter)),
  ];
  const others = rows.filter(({ workflow }) => workflow !== unnamed && !served.includes(String(workflow)));
  const found = new Map<string, UnservedWorkflow>();
  for (const [of, backlogs] of Map.groupBy(others, (row) => String(row.tenant))) {
    const workflows = JSON.stringify([...new Set(backlogs.map(({ workflow }) => String(workflow)))]);
    for (const row of yield* queryRows("lease.unserved", { tenant: of, workflows, minLagMs })) {
      const workflow = String(row.workflow);
      const known = found.get(workflow);
      const runs = Number(row.runs) + (known?.runs ?? 0);
      found.set(workflow, { workflow, runs, lagMs: Math.max(Number(row.lag_ms), known?.lagMs ?? 0) });
    }
  }
  const free = [...found.values()].sort((a, b) => (a.workflow < b.workflow ? -1 : 1));
  return tenant === undefined ? free : [...free, ...(yield* unservedBuildsPlan(tenant, minLagMs, claim))];
}

/** Runs that only processes of another build may drive, or of this build with other workflows. */
function* unservedBuildsPlan(tenant: string, minLagMs: number, claim?: BuildClaim): Plan<UnservedWorkflow[]> {
  const rows = yield* queryRows("build.unserved", { tenant, minLagMs });
  const isOwn = (build: string, workflow: string): boolean => build === claim?.build && claim.pinned.includes(workflow);
  return rows.flatMap(({ build, workflow, runs, lag_ms: lag }) =>
    isOwn(String(build), String(workflow))
      ? []
      : [{ workflow: String(workflow), build: String(build), runs: Number(runs), lagMs: Number(lag) }],
  );
}

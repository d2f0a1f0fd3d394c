import type { FindRequest, UnservedWorkflow } from "../../contract/store.ts";
import { type Plan, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { Findings, type FoundRow } from "./findings.ts";

/**
 * Journals that wait for a reactor are in one queue per tenant and workflow, and held ones likewise. A query names its
 * queues; one for all queues first lists them, and takes from each tenant in turn.
 */

/** Maximum number of queues in one query; a tenant beyond it waits for the next. */
const maxQueues = 1_000;
/** Items are in the queue without a name. */
const unnamed = "";
const itemReactors = ["reconciler", "outbox", "compensation"] as const;

/** Workflows by tenant. */
type Queues = ReadonlyMap<string, readonly string[]>;
type QueueRequest = { readonly tenant?: string | undefined; readonly workflows?: readonly string[] | undefined };

function* queuesOf(nextReactor: string | undefined, { tenant, workflows }: QueueRequest): Plan<Queues> {
  if (tenant !== undefined && workflows !== undefined) return new Map([[tenant, [unnamed, ...workflows]]]);
  const where = { tenant: tenant ?? null, limit: maxQueues };
  const rows =
    nextReactor === undefined
      ? yield* queryRows("lease.holders", where)
      : yield* queryRows("lease.queues", { ...where, nextReactor });
  const queues = new Map<string, string[]>();
  for (const row of rows) {
    const workflow = String(row.workflow);
    if (workflows !== undefined && workflow !== unnamed && !workflows.includes(workflow)) continue;
    const of = String(row.tenant);
    queues.set(of, [...(queues.get(of) ?? []), workflow]);
  }
  return queues;
}

/**
 * Journals that could be claimed now, with their callees if a share needs them. Each is then claimed in its own
 * transaction: one bad item never blocks others.
 */
export function* findPlan(request: FindRequest): Plan<ReadonlyMap<number, string>> {
  const { nextReactor, limit, nonce, preload, kind: itemKind } = request;
  const { owner } = request.claimant;
  const kind = request.workflows === undefined ? (itemKind ?? null) : "run";
  const where: QueueRequest = { tenant: request.tenant, workflows: itemKind === "item" ? [] : request.workflows };
  // Terms that this very find acquired come first: its response may have been lost.
  const held = yield* queuesOf(undefined, where);
  const found = new Findings(request.share);
  yield* found.add(yield* fromEach(held, limit, (queue) => queryRows("lease.by_nonce", { ...queue, owner, nonce })));
  if (found.size < limit) {
    const queues = yield* queuesOf(nextReactor, where);
    yield* found.fill(limit - found.size, (room, full) =>
      fromEach(queues, room, (queue, max) => queryRows("lease.due", { ...queue, nextReactor, kind, full, limit: max })),
    );
  }
  const room = Math.min(limit - found.size, request.staleLimit ?? limit);
  if (room > 0 && request.staleOf.length > 0) {
    const staleOf = request.staleOf.join(",");
    yield* found.fill(room, (of, full) =>
      fromEach(held, of, (queue, max) => queryRows("lease.stale", { ...queue, staleOf, kind, full, limit: max })),
    );
  }
  const maxPreloaded = Math.min(limit - found.size, preload?.limit ?? 0);
  if (preload !== undefined && maxPreloaded > 0) {
    const served = request.workflows === undefined ? null : JSON.stringify(request.workflows);
    const tenants = yield* tenantsOf(request.tenant, "timer.tenants");
    const find = (tenant: string): Plan<readonly FoundRow[]> =>
      queryRows("lease.preload", { aheadMs: preload.withinMs, tenant, served, limit: maxPreloaded });
    yield* found.add(yield* inTurn(tenants, maxPreloaded, find));
  }
  return found.callees;
}

type Queue = { readonly tenant: string; readonly workflows: string };

function* fromEach(
  queues: Queues,
  limit: number,
  find: (queue: Queue, limit: number) => Plan<readonly FoundRow[]>,
): Plan<readonly FoundRow[]> {
  const findOf = (tenant: string) => find({ tenant, workflows: JSON.stringify(queues.get(tenant)) }, limit);
  return yield* inTurn([...queues.keys()], limit, findOf);
}

/** One row of each tenant in turn, until there are enough: a long queue of one tenant does not delay the others. */
export function* inTurn<R>(
  tenants: readonly string[],
  limit: number,
  find: (tenant: string) => Plan<readonly R[]>,
): Plan<readonly R[]> {
  const lists: (readonly R[])[] = [];
  for (const tenant of tenants) lists.push(yield* find(tenant));
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
  return (yield* queryRows(sql, { limit: maxQueues })).map((row) => String(row.tenant));
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

export function* agendaPlan(tenant?: string, workflows?: readonly string[]): Plan<readonly RowOf<"agenda">[]> {
  const queues: string[][] = [];
  const ask = function* (reactor: string, where: QueueRequest): Plan<void> {
    const found = yield* queuesOf(reactor, where);
    for (const [of, names] of found) for (const workflow of names) queues.push([reactor, of, workflow]);
  };
  yield* ask("recovery", { tenant, workflows });
  for (const reactor of itemReactors) yield* ask(reactor, { tenant, workflows: tenant === undefined ? undefined : [] });
  const held = yield* queuesOf(undefined, { tenant, workflows });
  const holders = [...held].flatMap(([of, names]) => names.map((workflow) => [of, workflow]));
  const tenants = new Set(yield* tenantsOf(tenant, "timer.tenants"));
  for (const name of yield* tenantsOf(tenant, "schedule.tenants")) tenants.add(name);
  return yield* queryRows("agenda", {
    queues: JSON.stringify(queues),
    holders: JSON.stringify(holders),
    tenants: JSON.stringify([...tenants]),
  });
}

export function* unservedPlan(served: readonly string[], minLagMs: number, tenant?: string): Plan<UnservedWorkflow[]> {
  const filter = { tenant: tenant ?? null, limit: maxQueues };
  const rows = [
    ...(yield* queryRows("lease.queues", { nextReactor: "recovery", ...filter })),
    ...(yield* queryRows("lease.holders", filter)),
  ];
  const others = rows.filter(({ workflow }) => workflow !== unnamed && !served.includes(String(workflow)));
  const found = new Map<string, UnservedWorkflow>();
  for (const [of, queues] of Map.groupBy(others, (row) => String(row.tenant))) {
    const workflows = JSON.stringify([...new Set(queues.map(({ workflow }) => String(workflow)))]);
    for (const row of yield* queryRows("lease.unserved", { tenant: of, workflows, minLagMs })) {
      const workflow = String(row.workflow);
      const known = found.get(workflow);
      const runs = Number(row.runs) + (known?.runs ?? 0);
      found.set(workflow, { workflow, runs, lagMs: Math.max(Number(row.lag_ms), known?.lagMs ?? 0) });
    }
  }
  return [...found.values()].sort((a, b) => (a.workflow < b.workflow ? -1 : 1));
}

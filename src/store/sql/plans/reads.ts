import { TapeError } from "../../../model/errors.ts";
import type { LeaseTarget, LeaseView, TermView } from "../../../model/lease.ts";
import type { Limits } from "../../../model/limits.ts";
import { targetNotFound } from "../../../model/not-found.ts";
import type { JournalRecord } from "../../../model/records.ts";
import type { EffectRow, GateRow, TimerRow } from "../../../model/rows.ts";
import type { EffectFilter, GateFilter, Page, RunProgress, RunView, StoredValue } from "../../contract/store.ts";
import {
  effectRowOf,
  gateRowOf,
  recordOf,
  runProgressOf,
  runViewOf,
  timerRowOf,
  valueRowOf,
} from "../../decode-rows.ts";
import { leaseViewOf } from "../../lease-rules.ts";
import { placeIn } from "../../list-cursors.ts";
import { mapPage } from "../../page.ts";
import { termHistoryOf } from "../../term-history.ts";
import { pageLimit } from "../../validate/entry.ts";
import { queryPage } from "../paging.ts";
import { type Plan, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { findTarget } from "./target.ts";

export function* runPlanById(tenant: string, id: string): Plan<RunView | undefined> {
  const row = yield* queryRow("run.get", { tenant, id });
  return row === undefined ? undefined : yield* viewOfRun(row);
}

/** undefined: it was deleted between the two queries. */
function* viewOfRun(row: RowOf<"run.get">): Plan<RunView | undefined> {
  const lease = yield* queryRow("lease.read", { journal: Number(row.journal) });
  return lease === undefined ? undefined : runViewOf(row, leaseViewOf(lease));
}

/** undefined: the named run does not exist for this tenant, so nothing of it does. */
function* runNumber(tenant: string, run: string | undefined): Plan<number | null | undefined> {
  if (run === undefined) return null;
  const row = yield* queryRow("run.find", { tenant, id: run });
  return row === undefined ? undefined : Number(row.journal);
}

/**
 * Effects of one run or root are returned completely or not at all, because decisions need all of them. They may take
 * this many pages.
 */
const wholeTimes = 8;

export function* effectsPlan(tenant: string, filter: EffectFilter, limits: Limits): Plan<Page<EffectRow>> {
  const run = yield* runNumber(tenant, filter.run);
  if (run === undefined) return [];
  const { root, below = null, item, from = 0, role = null, minAgeMs = null } = filter;
  const { pageBytes } = limits;
  const few = { tenant, status: filter.status?.join(",") ?? null, minAgeMs, limit: pageLimit(filter.limit, limits) };
  const whole = { ...few, pageBytes: wholeTimes * pageBytes };
  if (root !== undefined) return yield* wholeEffects("effect.obligations", { ...whole, root, below, from });
  if (item !== undefined) {
    const found = (yield* queryRows("effect.item", { ...few, item, role })).map(effectRowOf);
    return found.filter((effect) => (run === null || effect.run === run) && effect.pos >= from);
  }
  if (filter.order === "desc") return yield* newestEffects(filter, { ...few, pageBytes, role }, run);
  const [afterRun, afterPos, afterSub] = placeIn(filter.after);
  const after = { afterRun, afterPos, afterSub };
  if (run === null) return mapPage(yield* queryPage("effect.list", { ...few, ...after, pageBytes, role }), effectRowOf);
  return yield* wholeEffects("effect.run", { ...whole, run, from, role });
}

/** Statuses of the index of open effects. */
const openStatuses: ReadonlySet<string> = new Set(["PENDING", "DISPATCHED", "UNKNOWN", "STUCK", "COMMITTED"]);
/** A page of effects, newest first; also those of one run, which may have very many. */
function* newestEffects(
  { status, after }: EffectFilter,
  few: Pick<
    Parameters<typeof queryPage<"effect.newest">>[1],
    "tenant" | "status" | "minAgeMs" | "limit" | "pageBytes" | "role"
  >,
  run: number | null,
): Plan<Page<EffectRow>> {
  const max = Number.MAX_SAFE_INTEGER;
  const [beforeRun, beforePos, beforeSub] = after === undefined ? [max, max, max] : placeIn(after);
  const edge = { beforePos, beforeSub };
  if (run !== null) return mapPage(yield* queryPage("effect.newest_of_run", { ...few, ...edge, run }), effectRowOf);
  if (status?.every((one) => openStatuses.has(one)) === true) {
    const { status: _status, ...open } = few;
    const params = { ...open, ...edge, beforeRun, statuses: JSON.stringify([...new Set(status)]) };
    return mapPage(yield* queryPage("effect.newest_open", params), effectRowOf);
  }
  return mapPage(yield* queryPage("effect.newest", { ...few, ...edge, beforeRun }), effectRowOf);
}

function* wholeEffects<N extends "effect.obligations" | "effect.run">(
  sql: N,
  params: Parameters<typeof queryPage<N>>[1],
): Plan<Page<EffectRow>> {
  const page = yield* queryPage(sql, params);
  if (page.more === true && page.length < params.limit) throw tooLarge("the effects of this run", params.pageBytes);
  return mapPage(page, effectRowOf);
}

export function tooLarge(what: string, bytes: number): TapeError {
  const message = `${what} take more than ${bytes} bytes together: request fewer`;
  return new TapeError("TAPE_TOO_LARGE", message, { limit: "pageBytes" });
}

export function* progressPlan(tenant: string, ids: readonly string[], limits: Limits): Plan<RunProgress[]> {
  const pageBytes = wholeTimes * limits.pageBytes;
  const few = { tenant, ids: JSON.stringify(ids), limit: Number.POSITIVE_INFINITY, pageBytes };
  const page = yield* queryPage("run.progress", few);
  if (page.more === true) throw tooLarge("the outcomes of these runs", pageBytes);
  return page.map(runProgressOf);
}

export function* journalPlan(
  tenant: string,
  target: LeaseTarget,
  page: { from?: number; limit?: number; inbox?: boolean },
  limits: Limits,
): Plan<Page<JournalRecord>> {
  const named = "journal" in target;
  const journal = named ? target.journal : yield* findTarget(tenant, target);
  if (journal === undefined) return [];
  const params = {
    journal: page.inbox === true ? -journal : journal,
    from: page.from ?? 1,
    tenant: named ? tenant : null,
  };
  const { pageBytes } = limits;
  const found = yield* queryPage("journal.page", { ...params, limit: pageLimit(page.limit, limits), pageBytes });
  return mapPage(found, recordOf);
}

export function* gatesPlan(tenant: string, filter: GateFilter, limits: Limits): Plan<Page<GateRow>> {
  const run = yield* runNumber(tenant, filter.run);
  if (run === undefined) return [];
  const [afterAt, afterRun, afterPos] = placeIn(filter.after);
  const after = { afterAt, afterRun, afterPos };
  const few = { tenant, ...after, limit: pageLimit(filter.limit, limits), pageBytes: limits.pageBytes };
  const { open = false } = filter;
  // By the narrowest index: gates of one run, open gates, or all of the tenant.
  const page =
    run !== null ? queryPage("gate.run", { ...few, run, open }) : queryPage(open ? "gate.open" : "gate.list", few);
  return mapPage(yield* page, gateRowOf);
}

export function* timersPlan(
  tenant: string,
  filter: { run?: string; limit?: number },
  limits: Limits,
): Plan<TimerRow[]> {
  const run = yield* runNumber(tenant, filter.run);
  if (run === undefined) return [];
  const few = { tenant, limit: pageLimit(filter.limit, limits) };
  const rows = run === null ? queryRows("timer.list", few) : queryRows("timer.run", { ...few, run });
  return (yield* rows).map(timerRowOf);
}

export function* historyPlan(
  tenant: string,
  key: string,
  after: number,
  few: { readonly limit: number; readonly pageBytes: number },
): Plan<Page<StoredValue>> {
  const values = mapPage(yield* queryPage("value.history", { tenant, key, after, ...few }), valueRowOf);
  const first = values[0]?.version;
  const current = yield* queryRow("value.get", { tenant, key });
  const version = current === undefined ? 0 : Number(current.version);
  // The versions before a deletion are erased, so a history that starts with the deletion has no gap.
  const erased = values[0]?.deleted === true;
  if (first === undefined ? after < version : first !== after + 1 && !erased) {
    const message = `version ${after + 1} of ${key} is no longer kept; the oldest kept one is ${first ?? version}`;
    throw new TapeError("TAPE_VALUE_COMPACTED", message, { key, oldest: first ?? version });
  }
  return values;
}

export function* leasePlan(tenant: string, target: LeaseTarget): Plan<LeaseView | undefined> {
  const journal = yield* findTarget(tenant, target);
  if (journal === undefined) return undefined;
  const row = yield* queryRow("lease.read", { journal });
  return row === undefined ? undefined : leaseViewOf(row);
}

export function* termsPlan(tenant: string, target: LeaseTarget): Plan<TermView[]> {
  const lease = yield* leasePlan(tenant, target);
  if (lease === undefined) throw targetNotFound(target);
  const rows = yield* queryRows("journal.terms", { journal: lease.journal });
  return termHistoryOf(rows.map(recordOf), lease);
}

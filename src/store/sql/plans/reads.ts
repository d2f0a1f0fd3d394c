import { TapeError } from "../../../model/errors.ts";
import type { LeaseView, Target, TermView } from "../../../model/lease.ts";
import type { Limits } from "../../../model/limits.ts";
import type { EffectRow, GateRow, TimerRow } from "../../../model/rows.ts";
import { pageLimit } from "../../check.ts";
import type { EffectFilter, RunView, Value } from "../../contract.ts";
import { leaseViewOf } from "../../lease-rules.ts";
import { termsOf } from "../../ledger.ts";
import { effectRowOf, gateRowOf, recordOf, runViewOf, timerRowOf, valueRowOf } from "../../rows.ts";
import { askRow, askRows, type Plan, type Row } from "../plan.ts";
import { absentTarget, findTarget } from "./target.ts";

/** Reading never needs a lease. */

export function* runPlanById(tenant: string, id: string): Plan<RunView | undefined> {
  const row = yield* askRow("run.get", { tenant, id });
  return row === undefined ? undefined : yield* viewOfRun(row);
}

export function* viewOfRun(row: Row): Plan<RunView> {
  const lease = yield* askRow("lease.read", { journal: Number(row.journal) });
  return runViewOf(row, leaseViewOf(lease!));
}

/** undefined: the named run does not exist for this tenant, so nothing of it does. */
function* runNumber(tenant: string, run: string | undefined): Plan<number | null | undefined> {
  if (run === undefined) return null;
  const row = yield* askRow("run.find", { tenant, id: run });
  return row === undefined ? undefined : Number(row.journal);
}

export function* effectsPlan(tenant: string, filter: EffectFilter, limits: Limits): Plan<EffectRow[]> {
  const run = yield* runNumber(tenant, filter.run);
  if (run === undefined) return [];
  const { root, below = null, item, from = 0, role = null, minAgeMs = null } = filter;
  const few = { tenant, status: filter.status?.join(",") ?? null, minAgeMs, limit: pageLimit(filter.limit, limits) };
  if (root !== undefined) return (yield* askRows("effect.owed", { ...few, root, below })).map(effectRowOf);
  if (item !== undefined) {
    const found = (yield* askRows("effect.item", { ...few, item, role })).map(effectRowOf);
    return found.filter((effect) => (run === null || effect.run === run) && effect.pos >= from);
  }
  if (run === null) return (yield* askRows("effect.list", { ...few, role })).map(effectRowOf);
  return (yield* askRows("effect.run", { ...few, run, from, role })).map(effectRowOf);
}

export function* gatesPlan(
  tenant: string,
  filter: { run?: string; open?: boolean; limit?: number },
  limits: Limits,
): Plan<GateRow[]> {
  const run = yield* runNumber(tenant, filter.run);
  if (run === undefined) return [];
  const limit = pageLimit(filter.limit, limits);
  return (yield* askRows("gate.list", { tenant, run, open: filter.open ?? false, limit })).map(gateRowOf);
}

export function* timersPlan(
  tenant: string,
  filter: { run?: string; limit?: number },
  limits: Limits,
): Plan<TimerRow[]> {
  const run = yield* runNumber(tenant, filter.run);
  if (run === undefined) return [];
  return (yield* askRows("timer.list", { tenant, run, limit: pageLimit(filter.limit, limits) })).map(timerRowOf);
}

export function* historyPlan(tenant: string, key: string, after: number, limit: number): Plan<Value[]> {
  const rows = yield* askRows("value.history", { tenant, key, after, limit });
  const values = rows.map(valueRowOf);
  const first = values[0]?.version;
  const current = yield* askRow("value.get", { tenant, key });
  const version = current === undefined ? 0 : Number(current.version);
  if (first === undefined ? after < version : first !== after + 1) {
    const message = `version ${after + 1} of ${key} is no longer kept; the oldest kept one is ${first ?? version}`;
    throw new TapeError("TAPE_VALUE_COMPACTED", message, { key, oldest: first ?? version });
  }
  return values;
}

export function* leasePlan(tenant: string, target: Target): Plan<LeaseView | undefined> {
  const journal = yield* findTarget(tenant, target);
  if (journal === undefined) return undefined;
  const row = yield* askRow("lease.read", { journal });
  return row === undefined ? undefined : leaseViewOf(row);
}

export function* termsPlan(tenant: string, target: Target): Plan<TermView[]> {
  const lease = yield* leasePlan(tenant, target);
  if (lease === undefined) throw absentTarget(target);
  const rows = yield* askRows("journal.terms", { journal: lease.journal });
  return termsOf(rows.map(recordOf), lease);
}

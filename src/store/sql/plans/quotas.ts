import type { TapeError } from "../../../model/errors.ts";
import {
  effectiveLimit,
  everyTenant,
  type Quota,
  type QuotaKind,
  type QuotaLimits,
  quotaExceeded,
  quotaKinds,
} from "../../../model/quota.ts";
import type { AuditInfo } from "../../contract/store.ts";
import { quotaOf } from "../../decode-rows.ts";
import { type Plan, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { recordOperatorAction } from "./service.ts";

/**
 * Quotas. A tenant without one pays nothing: the statements that create runs and schedules reject those of a tenant
 * with a limit. Only then room is requested here, in the same transaction, under the lock of the tenant's row.
 */

/**
 * A younger count is reused, so that many rejections in a row cost one count. An older one is repeated even if there is
 * room, because children are admitted without a check. Large counts are reused longer, so that counting stays a small
 * part of the work.
 */
const recountMs = 1_000;
const recountRuns = 10_000;
/** Records are measured again after this long, when a start needs the number of bytes. */
const remeterMs = 5_000;
/** Records measured in one transaction: some ten milliseconds. */
const meteredAtOnce = 50_000;
/** Runs flagged in one transaction when a limit is set. */
const flaggedAtOnce = 10_000;

/**
 * Room for one more run of this tenant, or TAPE_QUOTA. Not for children: an admitted run may finish. Measuring locks
 * rows of other tenants.
 */
export function* admitRun(tenant: string, measures = true): Plan<Room> {
  const room = yield* roomForRun(measures ? yield* measuredRow(tenant) : yield* lockedRow(tenant));
  if (room.full !== undefined) throw room.full;
  yield* query("quota.use", { tenant, used: room.used + 1, fresh: room.fresh });
  return room;
}

/** The admitted run exists already: its creator has counted it, and committed before this tenant's row was locked. */
export function* dismissRun(tenant: string, { used, fresh }: Room): Plan<void> {
  yield* query("quota.use", { tenant, used, fresh });
}

/** After a rejection: stores what was counted and measured for it, so that the next ones need not repeat it. */
export function* keepCountPlan(tenant: string): Plan<void> {
  const room = yield* roomForRun(yield* measuredRow(tenant));
  if (room.fresh) yield* query("quota.use", { tenant, used: room.used, fresh: true });
}

type QuotaRow = RowOf<"quota.lock">;

export interface Room {
  readonly used: number;
  /** The runs were counted just now. */
  readonly fresh: boolean;
  readonly full?: TapeError;
}

function* roomForRun(row: QuotaRow): Plan<Room> {
  const limit = limitIn(row, "runs");
  let used = Number(row.runs_used);
  let fresh = false;
  const countedAt = Number(row.runs_at); // 0: never
  const full = limit !== null && used >= limit;
  const reuseMs = full ? recountMs : Math.max(recountMs, (used / recountRuns) * recountMs);
  const old = countedAt === 0 || Math.abs(Number(row.at) - countedAt) >= reuseMs;
  if (limit !== null && old) {
    used = Number((yield* queryRow("quota.open", { tenant: row.tenant }))?.n);
    fresh = true;
  }
  if (limit !== null && used >= limit) return { used, fresh, full: quotaExceeded("runs", used, limit) };
  const bytes = limitIn(row, "bytes");
  if (bytes === null) return { used, fresh };
  const measured = Number(row.bytes_used);
  return measured < bytes ? { used, fresh } : { used, fresh, full: quotaExceeded("bytes", measured, bytes) };
}

/** Whether a start of this tenant must measure the records first. */
export function* meterDuePlan(tenant: string): Plan<boolean> {
  const seen = yield* queryRow("quota.seen", { tenant });
  return seen !== undefined && needsMeter(seen);
}

const needsMeter = (seen: QuotaRow): boolean =>
  Math.abs(Number(seen.at) - Number(seen.metered_at)) >= remeterMs && limitIn(seen, "bytes") !== null;

/** The tenant's row, locked. If bytes are limited and the last measurement is old, they are measured first. */
function* measuredRow(tenant: string): Plan<QuotaRow> {
  if (yield* meterDuePlan(tenant)) yield* meterPlan(tenant);
  return yield* lockedRow(tenant);
}

export function* admitSchedule(tenant: string): Plan<void> {
  const limit = limitIn(yield* lockedRow(tenant), "schedules");
  if (limit === null) return;
  const used = Number((yield* queryRow("schedule.count", { tenant }))?.n);
  if (used >= limit) throw quotaExceeded("schedules", used, limit);
}

function* lockedRow(tenant: string): Plan<QuotaRow> {
  const known = yield* queryRow("quota.lock", { tenant });
  if (known !== undefined) return known;
  yield* query("quota.create", { tenant });
  return (yield* queryRow("quota.lock", { tenant }))!;
}

const numberIn = (value: unknown): number | null => (value === null || value === undefined ? null : Number(value));
const limitIn = (row: QuotaRow, kind: QuotaKind): number | null =>
  effectiveLimit(numberIn(row[kind]), numberIn(row[`default_${kind}`]));

export function* setQuotaPlan(tenant: string, change: Partial<QuotaLimits>, audit: AuditInfo): Plan<Quota> {
  const row = yield* lockedRow(tenant);
  const limits = Object.fromEntries(
    quotaKinds.map((kind) => [kind, change[kind] === undefined ? numberIn(row[kind]) : change[kind]]),
  ) as QuotaLimits;
  yield* query("quota.set", { tenant, ...limits });
  const about = tenant === everyTenant ? { tenant: audit.home ?? everyTenant, default: true } : { tenant };
  yield* recordOperatorAction("quota.set", audit, { ...about, ...limits });
  return quotaOf((yield* queryRow("quota.get", { tenant }))!);
}

/** Flags runs that started before the limit. Returns how far it got; undefined: to the end. */
export function* flagRunsPlan(after: number): Plan<number | undefined> {
  const until = (yield* queryRow("quota.range", { after, limit: flaggedAtOnce }))?.until;
  if (until === null || until === undefined) return undefined;
  yield* query("quota.flag", { after, until: Number(until) });
  return Number(until);
}

export function* recountPlan(tenant: string): Plan<void> {
  yield* query("quota.recount", { tenant });
}

export function* beginMeterPlan(): Plan<void> {
  yield* lockedRow(everyTenant);
  yield* query("usage.begin");
}

/**
 * Adds the bytes of records written since the last measurement to their tenants' rows; true: of all of them. Each
 * record is counted once, because the position is stored together with the sums.
 */
export function* meterPlan(own?: string): Plan<boolean> {
  const meter = yield* queryRow("usage.lock");
  if (meter === undefined) return true; // not enabled, or another process is measuring
  const after = Number(meter.metered);
  const reached = yield* queryRow("usage.edge", { after, limit: meteredAtOnce });
  const edge = Number(reached?.edge ?? after);
  const sums = edge > after ? yield* queryRows("usage.sum", { after, edge }) : [];
  // Transactions that lock several rows do so in one order; the row that the caller needs next is one of them.
  const added = new Map(sums.map(({ tenant, bytes }) => [String(tenant), Number(bytes)]));
  if (own !== undefined) added.set(own, added.get(own) ?? 0);
  const tenants = [...added.keys()].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const tenant of tenants) yield* query("usage.add", { tenant, bytes: added.get(tenant)! });
  const fresh = reached === undefined || Number(reached.last) === edge;
  yield* query("usage.moved", { edge, fresh });
  return fresh;
}

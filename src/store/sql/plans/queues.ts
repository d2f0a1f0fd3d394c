import { encode } from "../../../base/codec.ts";
import { TapeError } from "../../../model/errors.ts";
import type { Limits } from "../../../model/limits.ts";
import { effectiveLimits, mergedChange, type QueueChange, type QueueSpec } from "../../../model/queue.ts";
import { paceOf } from "../../../model/queue-turns.ts";
import type { AuditInfo, QueueDefined, QueueView } from "../../contract/store.ts";
import { type Plan, type PlanContext, query, queryRow } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { unknownQueue, wakeOf } from "./append.ts";
import { queuePlan } from "./queue-reads.ts";
import { recordOperatorAction } from "./service.ts";

/** Definitions and settings of queues: what `store.intake` writes about them. */

export function* putQueuePlan(context: PlanContext, tenant: string, name: string, spec: QueueSpec): Plan<QueueDefined> {
  const seen = yield* queryRow("queue.find", { tenant, name });
  if (seen === undefined) {
    yield* assertRoom(tenant, context.limits);
    const created = yield* query("queue.create", {
      id: context.allocate(),
      tenant,
      name,
      ...columnsOf(spec, undefined),
    });
    if (created.count > 0) return { name, version: 1, fresh: true };
  }
  const row = (yield* queryRow("queue.lock", { tenant, name }))!;
  const before = JSON.parse(row.spec) as QueueSpec;
  const version = Number(row.version);
  if (row.spec === JSON.stringify(spec)) return { name, version, fresh: false };
  if (before.counts !== spec.counts && (yield* queryRow("queue.in_use", { queue: row.id! }))?.used) {
    const message = `queue ${name} counts ${before.counts} runs: it cannot count ${spec.counts} ones while it has runs`;
    throw new TapeError("TAPE_QUEUE_CHANGED", message, { queue: name, counts: before.counts });
  }
  yield* apply(context, tenant, row, spec, overrideOf(row));
  return { name, version: version + 1, fresh: false, replaced: before };
}

function* assertRoom(tenant: string, limits: Limits): Plan<void> {
  if (Number((yield* queryRow("queue.count", { tenant }))?.n) < limits.queues) return;
  const message = `the tenant has ${limits.queues} queues already; a key divides a queue as well`;
  throw new TapeError("TAPE_TOO_LARGE", message, { limit: "queues" });
}

type QueueRow = RowOf<"queue.lock">;

const overrideOf = ({ override }: QueueRow): QueueChange | undefined =>
  override === null ? undefined : (JSON.parse(override) as QueueChange);

function columnsOf(spec: QueueSpec, override: QueueChange | undefined) {
  const { concurrency, rate, perKey } = effectiveLimits(spec, override);
  const pace = rate && paceOf(rate);
  const keyPace = perKey?.rate && paceOf(perKey.rate);
  return {
    spec: JSON.stringify(spec),
    override: override === undefined ? null : JSON.stringify(override),
    counts: spec.counts,
    concurrency: concurrency ?? null,
    keyConcurrency: perKey?.concurrency ?? null,
    rateUs: pace?.intervalUs ?? null,
    rateBurst: pace?.burst ?? null,
    keyRateUs: keyPace?.intervalUs ?? null,
    keyRateBurst: keyPace?.burst ?? null,
  };
}

/** Writes the limits in effect. Keys that were full under the old ones may be ready now, and the reverse. */
function* apply(
  context: PlanContext,
  tenant: string,
  row: QueueRow,
  spec: QueueSpec,
  override: QueueChange | undefined,
): Plan<void> {
  const id = Number(row.id);
  const columns = columnsOf(spec, override);
  yield* query("queue.change", { id, ...columns });
  yield* query("partition.caps", { queue: id, cap: columns.keyConcurrency });
  if (columns.keyRateUs === null) yield* query("partition.unpaced", { queue: id });
  context.wake(wakeOf("recovery", tenant));
}

export function* changeQueuePlan(
  context: PlanContext,
  tenant: string,
  name: string,
  change: QueueChange | undefined,
  audit: AuditInfo,
): Plan<QueueView> {
  const row = yield* lockedQueue(tenant, name);
  const override = change === undefined ? undefined : mergedChange(overrideOf(row), change);
  yield* apply(context, tenant, row, JSON.parse(row.spec) as QueueSpec, override);
  const action = change === undefined ? "queue.reset" : "queue.set";
  yield* recordOperatorAction(action, audit, { tenant, queue: name, ...(change && { change }) });
  return yield* queuePlan(tenant, name);
}

export function* pauseQueuePlan(
  context: PlanContext,
  tenant: string,
  name: string,
  paused: boolean,
  audit: AuditInfo,
  key: string | undefined,
): Plan<QueueView> {
  const row = yield* lockedQueue(tenant, name);
  const id = Number(row.id);
  const at = Number((yield* queryRow("meta.get"))?.at);
  const pause = paused ? encode({ by: audit.by, reason: audit.reason, at }) : null;
  if (key === undefined) yield* query("queue.pause", { id, pause });
  else yield* query("partition.pause", { queue: id, key, pause });
  const about = { tenant, queue: name, ...(key !== undefined && { key }) };
  yield* recordOperatorAction(paused ? "queue.pause" : "queue.resume", audit, about);
  if (!paused) context.wake(wakeOf("recovery", tenant));
  return yield* queuePlan(tenant, name);
}

function* lockedQueue(tenant: string, name: string): Plan<QueueRow> {
  const row = yield* queryRow("queue.lock", { tenant, name });
  if (row === undefined) throw unknownQueue(name);
  return row;
}

import { decode } from "../../../base/codec.ts";
import type { Limits } from "../../../model/limits.ts";
import type { RunPhase } from "../../../model/machines.ts";
import {
  effectiveLimits,
  type QueueChange,
  type QueueReason,
  type QueueSpec,
  type SlotState,
  weightUnit,
} from "../../../model/queue.ts";
import { rateNextAt } from "../../../model/queue-turns.ts";
import type {
  Page,
  PartitionView,
  PauseView,
  QueuePosition,
  QueueView,
  SlotFilter,
  SlotView,
} from "../../contract/store.ts";
import { statusOf } from "../../decode-rows.ts";
import { mapPage, pageOf } from "../../page.ts";
import { pageLimit } from "../../validate/entry.ts";
import { type Plan, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { unknownQueue } from "./append.ts";

/** Queues as operators see them. */

type PageRequest = { readonly above?: string; readonly limit?: number };

/** More keys are not counted, see the statement. */
const countedKeys = 10_000;
/** Runs that are counted before another, and named as holders. */
const countedRuns = 10_000;
const namedRuns = 10;

export function* queuesPlan(tenant: string, { above = "", limit }: PageRequest, limits: Limits): Plan<Page<QueueView>> {
  const max = pageLimit(limit, limits);
  const rows = yield* queryRows("queue.show", { tenant, above, name: null, limit: max });
  return pageOf(rows.map(viewOf), rows.length === max);
}

export function* queuePlan(tenant: string, name: string): Plan<QueueView> {
  const row = yield* queryRow("queue.show", { tenant, above: "", name, limit: 1 });
  if (row === undefined) throw unknownQueue(name);
  return viewOf(row);
}

const pauseOf = (text: unknown): { readonly paused?: PauseView } =>
  text === null || text === undefined ? {} : { paused: decode(text as string) as PauseView };

function viewOf(row: RowOf<"queue.show">): QueueView {
  const spec = JSON.parse(row.spec) as QueueSpec;
  const override = row.override === null ? undefined : (JSON.parse(row.override) as QueueChange);
  const pace = row.rate_us === null ? undefined : { intervalUs: Number(row.rate_us), burst: Number(row.rate_burst) };
  const nextAt = rateNextAt(Number(row.tat), Number(row.now), pace);
  const keys = Number(row.keys);
  return {
    name: row.name,
    version: Number(row.version),
    spec,
    ...(override !== undefined && { override }),
    limits: effectiveLimits(spec, override),
    ...pauseOf(row.pause),
    running: Number(row.running),
    waiting: Number(row.waiting),
    keys,
    more: keys === countedKeys,
    ...(row.wait_ms !== null && { oldestWaitMs: Math.max(0, Number(row.wait_ms)) }),
    ...(nextAt !== undefined && { nextAt: nextAt + Number(row.ahead) }),
    started: Number(row.started),
  };
}

function* queueNumber(tenant: string, name: string): Plan<number> {
  const row = yield* queryRow("queue.find", { tenant, name });
  if (row === undefined) throw unknownQueue(name);
  return Number(row.id);
}

export function* partitionsPlan(
  tenant: string,
  name: string,
  { above, limit }: PageRequest,
  limits: Limits,
): Plan<Page<PartitionView>> {
  const queue = yield* queueNumber(tenant, name);
  const max = pageLimit(limit, limits);
  const rows = yield* queryRows("partition.list", { queue, above: above ?? null, limit: max });
  const views = rows.map(
    (row): PartitionView => ({
      key: row.key,
      running: Number(row.running),
      waiting: Number(row.waiting),
      weight: Number(row.weight) / weightUnit,
      ...pauseOf(row.pause),
      ...(row.wait_ms !== null && { oldestWaitMs: Math.max(0, Number(row.wait_ms)) }),
      ...(row.next_at !== null && { nextAt: Number(row.next_at) }),
      ready: Boolean(row.ready),
    }),
  );
  return pageOf(views, rows.length === max);
}

export function* slotsPlan(tenant: string, name: string, filter: SlotFilter, limits: Limits): Plan<Page<SlotView>> {
  const queue = yield* queueNumber(tenant, name);
  const limit = pageLimit(filter.limit, limits);
  const { state } = filter;
  const keys = keyRange(filter.key);
  const held = state === "QUEUED" ? [] : yield* queryRows("slot.held", { queue, ...keys, limit });
  const left = limit - held.length;
  const waiting =
    state === "HELD" || left === 0 ? [] : yield* queryRows("slot.waiting", { queue, ...keys, limit: left });
  const rows = [...held, ...waiting];
  return mapPage(pageOf(rows, rows.length === limit), slotViewOf);
}

const slotViewOf = (row: RowOf<"slot.held">): SlotView => ({
  run: row.id,
  journal: Number(row.journal),
  workflow: row.workflow,
  key: row.key,
  class: Number(row.class),
  state: row.state as SlotState,
  sinceMs: Math.max(0, Number(row.since_ms)),
  status: statusOf(row.phase as RunPhase, row.lease_owner !== null, row.lease_next_reactor !== null, row.slot),
});

export function* positionPlan(tenant: string, run: string): Plan<QueuePosition | undefined> {
  const row = yield* queryRow("slot.show", { tenant, id: run });
  if (row === undefined) return undefined;
  const position = {
    run,
    queue: row.name ?? "",
    key: row.key,
    class: Number(row.class),
    state: row.state as SlotState,
    sinceMs: Math.max(0, Number(row.since_ms)),
  };
  const reasons = row.state === "QUEUED" ? yield* reasonsOf(tenant, row) : [];
  if (row.state !== "DELAYED") return { ...position, reasons };
  const timers = yield* queryRows("timer.run", { tenant, run: Number(row.journal), limit: countedRuns });
  const start = timers.find(({ purpose, status }) => purpose === "start" && status === "SET");
  return { ...position, reasons: start === undefined ? [] : [{ why: "delayed", at: Number(start.due_at) }] };
}

/** Why a run does not start: everything that would keep it back now. */
function* reasonsOf(tenant: string, row: RowOf<"slot.show">): Plan<QueueReason[]> {
  const queue = Number(row.queue);
  const { key } = row;
  const view = yield* queuePlan(tenant, row.name!);
  const part = yield* queryRow("partition.show", { queue, key });
  const reasons: QueueReason[] = [];
  const { limits, running } = view;
  if (view.paused !== undefined) reasons.push({ why: "paused", by: view.paused.by, reason: view.paused.reason });
  const { paused } = pauseOf(part?.pause);
  if (paused !== undefined) reasons.push({ why: "paused", key, by: paused.by, reason: paused.reason });
  if (limits.concurrency !== undefined && running >= limits.concurrency) {
    reasons.push({ why: "queue_full", running, limit: limits.concurrency, runs: yield* holders(queue, undefined) });
  }
  const keyLimit = limits.perKey?.concurrency;
  const keyRunning = Number(part?.running ?? 0);
  if (keyLimit !== undefined && keyRunning >= keyLimit) {
    reasons.push({ why: "key_full", running: keyRunning, limit: keyLimit, runs: yield* holders(queue, key) });
  }
  if (Number(row.class) > 0 && view.nextAt !== undefined) reasons.push({ why: "rate", nextAt: view.nextAt });
  const keyNext = part?.next_at ?? null;
  if (Number(row.class) > 0 && keyNext !== null) reasons.push({ why: "rate", key, nextAt: Number(keyNext) });
  const at = { queue, key, class: Number(row.class), since: Number(row.since), journal: Number(row.journal) };
  const runs = Number((yield* queryRow("slot.ahead", { ...at, limit: countedRuns }))?.n);
  if (runs > 0) reasons.push({ why: "behind", runs, more: runs === countedRuns });
  return reasons;
}

function* holders(queue: number, key: string | undefined): Plan<string[]> {
  return (yield* queryRows("slot.held", { queue, ...keyRange(key), limit: namedRuns })).map(({ id }) => id);
}

/** No key is longer or greater. */
const lastKey = String.fromCodePoint(0x10ffff).repeat(512);

/** One key, or all of them: always a range of the index. */
const keyRange = (key: string | undefined) => ({ fromKey: key ?? "", toKey: key ?? lastKey });

import type { Limits } from "../../model/limits.ts";
import { readCheckpoint } from "../../model/sink-checkpoint.ts";
import { sinkStateOf } from "../../model/sink-state.ts";
import { type EventReadOps, maxCounted, type SinkRow } from "../contract/store.ts";
import type { CursorSeal, OpenSeal } from "../cursor-seal.ts";
import { pageOf } from "../page.ts";
import type { SqlBackend } from "./backend.ts";
import { type Plan, queryRow } from "./plan.ts";
import { type FoundSink, sinksPlan } from "./plans/events.ts";

/** Runs that ended later than this are not about to be pruned. */
const keptMs = 3_600_000;
/** Pages without a record of the tenant: its next one is behind many records of others. */
const maxPages = 100;

/** Sinks with their places in the feed. */
export function sinksOf(driver: SqlBackend, limits: Limits, seal: OpenSeal): EventReadOps["sinks"] {
  return async (tenant, page = {}) => {
    const found = await driver.read(sinksPlan(tenant, page, limits), tenant);
    const cursors = await seal();
    const rows: SinkRow[] = [];
    for (const sink of found) rows.push(await placed(driver, cursors, tenant, sink));
    return pageOf(rows, found.more === true);
  };
}

async function placed(driver: SqlBackend, cursors: CursorSeal, tenant: string, found: FoundSink): Promise<SinkRow> {
  const { checkpoint: text } = found.lease;
  const checkpoint = readCheckpoint(text);
  const { paused } = checkpoint ?? {};
  const row = { ...found, state: sinkStateOf(found.lease, paused), ...(paused && { paused }) };
  if (text === undefined) return { ...row, lagMs: 0, keptRuns: 0 };
  const position = positionOf(cursors, tenant, driver.feedParts, checkpoint?.cursor);
  const passedAt = position === undefined ? undefined : checkpoint?.at;
  const [now, nextAt] = [await driver.read(nowPlan(), tenant), await nextAfter(driver, position, tenant)];
  const lagMs = nextAt === undefined ? 0 : Math.max(0, now - nextAt);
  const kept = keptPlan(tenant, passedAt ?? 0, now - keptMs);
  return {
    ...row,
    lagMs,
    ...(passedAt !== undefined && { passedAt }),
    keptRuns: lagMs < keptMs ? 0 : await driver.read(kept, tenant),
  };
}

/** As for pruning, a checkpoint that cannot be read has passed nothing. */
function positionOf(seal: CursorSeal, tenant: string, parts: number, cursor: unknown): string | undefined {
  try {
    return typeof cursor === "string" ? seal.open(tenant, cursor, parts) : undefined;
  } catch {
    return undefined;
  }
}

/** When the first record behind the position was written. */
async function nextAfter(driver: SqlBackend, from: string | undefined, tenant: string): Promise<number | undefined> {
  let position = from;
  for (let k = 0; k < maxPages; k++) {
    const { records, cursor, more } = await driver.feed(position, 1, tenant);
    if (records.length > 0) return records[0]!.at;
    if (more !== true) return undefined;
    position = cursor;
  }
  return undefined;
}

function* nowPlan(): Plan<number> {
  return Number((yield* queryRow("meta.get", {}))?.at ?? 0);
}

function* keptPlan(tenant: string, after: number, before: number): Plan<number> {
  const row = yield* queryRow("sink.kept_runs", { tenant, after, before, cap: maxCounted });
  return Number(row?.n ?? 0);
}

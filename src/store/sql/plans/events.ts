import {
  type DeadLetter,
  type LetterState,
  type NewDeadLetter,
  sinkLease,
  sinkOfLease,
} from "../../../model/dead-letter.ts";
import { TapeError } from "../../../model/errors.ts";
import type { Fence } from "../../../model/fence.ts";
import type { Limits } from "../../../model/limits.ts";
import { notFound } from "../../../model/not-found.ts";
import type { AuditInfo, Page, SinkRow, Subject } from "../../contract/store.ts";
import { deadLetterOf, subjectOf } from "../../decode-rows.ts";
import { leaseViewOf } from "../../lease-rules.ts";
import { letterPlace } from "../../list-cursors.ts";
import { mapPage, pageOf } from "../../page.ts";
import { staleError } from "../../validate/arguments.ts";
import { pageLimit } from "../../validate/entry.ts";
import { queryPage } from "../paging.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import { whyFenced } from "./append.ts";
import { recordOperatorAction } from "./service.ts";

/** Plans of sinks: checkpoints, dead letters, whose records they are. */

/** One fenced update and no record: a record for each move would itself be in the feed that the sink reads. */
export function* checkpointPlan(fence: Fence, text: string | null): Plan<void> {
  const { tenant, journal, token, nonce } = fence;
  const { count } = yield* query("lease.checkpoint", { tenant, journal, token, nonce, text });
  if (count > 0) return;
  const row = yield* whyFenced(fence);
  const stale = staleError(fence, row);
  if (row === undefined || row.kind === "name" || row.token !== String(token) || row.nonce !== String(nonce))
    throw stale;
  const message = "only a named lease has a checkpoint: what a run must remember is in its journal";
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "fence", journal });
}

/** The sink whose lease this fence holds. */
function* fencedSink(fence: Fence): Plan<string> {
  const { tenant, journal, token, nonce } = fence;
  const row = yield* queryRow("fence.name", { tenant, journal, token, nonce });
  const sink = row === undefined ? undefined : sinkOfLease(row.name);
  if (sink !== undefined) return sink;
  const found = yield* whyFenced(fence);
  if (row === undefined) throw staleError(fence, found);
  throw new TapeError("TAPE_BAD_INPUT", `${row.name} is not the lease of a sink`, { field: "fence", journal });
}

export function* deadLetterPlan(fence: Fence, letter: NewDeadLetter): Plan<void> {
  const sink = yield* fencedSink(fence);
  const { event, journal, seq, inbox, kind, attempts, code, error } = letter;
  const { tenant } = fence;
  yield* query("dead_letter.put", { tenant, sink, event, journal, seq, inbox, kind, attempts, code, error });
}

export function* letterSentPlan(fence: Fence, event: string): Plan<void> {
  const sink = yield* fencedSink(fence);
  yield* query("dead_letter.sent", { tenant: fence.tenant, sink, event });
}

/** The fan-out of the sink checks for replays at the wake hint. */
export function* settleLettersPlan(
  context: PlanContext,
  { tenant, sink, to }: { readonly tenant: string; readonly sink: string; readonly to: "REPLAY" | "DISCARDED" },
  events: readonly string[] | undefined,
  audit: AuditInfo,
): Plan<number> {
  const lease = yield* queryRow("name.find", { tenant, name: sinkLease(sink) });
  if (lease === undefined) throw notFound("sink", sink);
  const wanted = events === undefined ? null : JSON.stringify(events);
  const limit = context.limits.batchItems;
  const { count } = yield* query("dead_letter.settle", { tenant, sink, to, events: wanted, limit });
  const action = to === "REPLAY" ? "sink.replay" : "sink.discard";
  yield* recordOperatorAction(action, audit, { tenant, sink, letters: count });
  context.wake({ of: "journal", tenant, journal: Number(lease.journal) });
  return count;
}

export function* deadLettersPlan(
  tenant: string,
  sink: string,
  page: { readonly state?: LetterState; readonly after?: string; readonly limit?: number },
  limits: Limits,
): Plan<Page<DeadLetter>> {
  const { state = "OPEN", after } = page;
  const [afterAt, afterEvent] = letterPlace(after);
  const few = { limit: pageLimit(page.limit, limits), pageBytes: limits.pageBytes };
  const rows = yield* queryPage("dead_letter.list", { tenant, sink, state, afterAt, afterEvent, ...few });
  return mapPage(rows, deadLetterOf);
}

export function* subjectsPlan(tenant: string, journals: readonly number[]): Plan<Subject[]> {
  if (journals.length === 0) return [];
  return (yield* queryRows("subjects", { tenant, journals: JSON.stringify([...new Set(journals)]) })).map(subjectOf);
}

/** A sink before its checkpoint is compared with the feed. */
export type FoundSink = Pick<SinkRow, "sink" | "lease" | "openLetters">;

export function* sinksPlan(
  tenant: string,
  page: { readonly above?: string; readonly limit?: number },
  limits: Limits,
): Plan<Page<FoundSink>> {
  const limit = pageLimit(page.limit, limits);
  const rows = yield* queryRows("sink.list", { tenant, above: page.above ?? "", limit });
  const sinks: FoundSink[] = [];
  for (const { journal, name, letters } of rows) {
    const row = yield* queryRow("lease.read", { journal: Number(journal) });
    if (row === undefined) continue;
    sinks.push({ sink: sinkOfLease(name)!, lease: leaseViewOf(row), openLetters: Number(letters) });
  }
  return pageOf(sinks, rows.length >= limit);
}

/** A position of the feed, as its numbers. */
export type FeedPosition = readonly [stamp: bigint, journal: bigint, seq: bigint];

/**
 * The position that every sink of the tenant has passed; undefined: the tenant has no sink with a checkpoint. One that
 * cannot be read has passed nothing.
 */
export function* passedPosition(tenant: string, open: (cursor: string) => string): Plan<FeedPosition | undefined> {
  let min: FeedPosition | undefined;
  for (const { checkpoint } of yield* queryRows("sink.checkpoints", { tenant })) {
    const position = positionIn(checkpoint!, open);
    if (min === undefined || isBefore(position, min)) min = position;
  }
  return min;
}

function positionIn(checkpoint: string, open: (cursor: string) => string): FeedPosition {
  try {
    const { cursor } = JSON.parse(checkpoint) as { cursor?: unknown };
    const [stamp = 0n, journal = 0n, seq = 0n] = open(String(cursor)).split(".").map(BigInt);
    return [stamp, journal, seq];
  } catch {
    return [0n, 0n, 0n];
  }
}

export function isBefore(a: FeedPosition, b: FeedPosition): boolean {
  for (let k = 0; k < a.length; k++) if (a[k] !== b[k]) return a[k]! < b[k]!;
  return false;
}

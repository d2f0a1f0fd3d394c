import { type Change, isRequired, refusals } from "../../../model/changes.ts";
import { type ErrorCode, TapeError } from "../../../model/errors.ts";
import type { Fence } from "../../../model/fence.ts";
import { notFound } from "../../../model/not-found.ts";
import { changesOf, type RecordContext } from "../../../model/projection.ts";
import type { JournalKind } from "../../../model/rows.ts";
import type { AppendResult, WakeHint } from "../../contract/store.ts";
import { staleError } from "../../validate/arguments.ts";
import type { CheckedEntry } from "../../validate/entry.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { assertBlobs } from "./assert-blobs.ts";
import { auditRecords } from "./audit.ts";
import { insertDetached } from "./detached.ts";
import { setLabels } from "./labels.ts";
import { moveSlot, noteSlot } from "./slots.ts";

/**
 * The only way in which records enter a journal: checks the fence, appends the records and applies their changes, or
 * nothing.
 */
export function* appendPlan(context: PlanContext, fence: Fence, entry: CheckedEntry): Plan<AppendResult> {
  const { tenant, journal, token, nonce } = fence;
  const { after, records } = entry;
  const sql = context.locksRelease && entry.releases ? "fence.release" : "fence";
  const row = yield* queryRow(sql, { tenant, journal, token, nonce, after });
  if (row === undefined) return yield* appendRetryPlan(fence, entry);
  const recordContext = recordContextOf(context, fence, row);
  // Changes are computed before the first write: a record in the wrong journal is rejected with nothing to roll back.
  const changes = records.flatMap((record, k) => changesOf(record, recordContext, after + 1 + k));
  if (entry.blobs !== undefined) yield* assertBlobs(journal, entry.blobs);
  // A change that only checks, and sees no other record of this entry, runs first, too.
  const [first, ...others] = changes;
  const checksFirst = records.length === 1 && first?.do === "run.assert_settled";
  if (checksFirst) yield* applyChange(context, first, recordContext.tenant);
  if (records.length === 1) for (const change of changes) yield* assertNotesTaken(change, row);
  for (const [k, record] of records.entries()) {
    const seq = after + 1 + k;
    const { count } = yield* query("record.append", { journal, seq, token, kind: record.kind, body: entry.bodies[k]! });
    if (count > 0) continue;
    if (k === 0) return yield* appendRetryPlan(fence, entry);
    throw yield* explainRefusal(fence, after);
  }
  for (const change of checksFirst ? others : changes) yield* applyChange(context, change, recordContext.tenant);
  yield* auditRecords(recordContext, entry);
  return { head: after + records.length, notes: Number(row.notes) };
}

/**
 * An append of plain records that is never taken for a repeat of one whose response was lost: its transaction has rows
 * of the caller, too, and a repeat would write them twice.
 */
export function* appendOncePlan(context: PlanContext, fence: Fence, entry: CheckedEntry): Plan<AppendResult> {
  const { tenant, journal, token, nonce } = fence;
  const { after, records, bodies } = entry;
  const row = yield* queryRow("fence", { tenant, journal, token, nonce, after });
  if (row === undefined) throw yield* explainRefusal(fence, after);
  const recordContext = recordContextOf(context, fence, row);
  for (const record of records) changesOf(record, recordContext); // rejects a record in the wrong journal
  if (entry.blobs !== undefined) yield* assertBlobs(journal, entry.blobs);
  for (const [k, { kind }] of records.entries()) {
    const { count } = yield* query("record.append", { journal, seq: after + 1 + k, token, kind, body: bodies[k]! });
    if (count === 0) throw yield* explainRefusal(fence, after);
  }
  return { head: after + records.length, notes: Number(row.notes) };
}

/** Under the fence's lock the counter cannot change (see fence.release), so it is compared before writing. */
function* assertNotesTaken(change: Change, row: RowOf<"fence">): Plan<void> {
  if (change.do !== "lease.release" || row.kind === "name" || Number(row.notes) === change.notesTaken) return;
  throw yield* refusalOf(change, row.tenant);
}

export type FencedRecordContext = RecordContext & { readonly tenant: string };

export function recordContextOf(context: PlanContext, fence: Fence, row: RowOf<"fence">): FencedRecordContext {
  return {
    journal: fence.journal,
    kind: row.kind as JournalKind,
    token: fence.token,
    nonce: fence.nonce,
    tenant: row.tenant,
    queued: row.queue !== null,
    keepVersions: context.limits.valueHistory,
    maxNames: context.limits.publishedNames,
    maxUnits: context.limits.budgetUnits,
    maxLabels: context.limits.labels,
    allocate: () => context.allocate(),
  };
}

/**
 * Applies one change by the statement of its name; throws if its condition does not hold. The tenant is the fence's:
 * statements on a journal that a record names compare it.
 */
export function* applyChange(context: PlanContext, change: Change, tenant: string): Plan<void> {
  if (change.do === "note.create") return yield* createNote(context, change, tenant);
  if (change.do === "slot.set") return yield* applyMove(context, change, tenant);
  if (change.do === "slot.create") return yield* createSlot(context, change, tenant);
  if (change.do === "run.create" && change.parent === null) return yield* insertDetached(context, change, tenant);
  if (change.do === "labels.set") return yield* setLabels(change, tenant);
  const result = yield* query(change.do, { ...change, tenant });
  if (result.count === 0 && isRequired(change)) throw yield* refusalOf(change, tenant);
  switch (change.do) {
    case "lease.create":
      if (change.nextReactor !== null) context.wake(wakeOf(change.nextReactor, tenant, change.workflow));
      return;
    case "lease.wake":
      return context.wake(wakeOf(change.nextReactor, tenant));
    case "items.sweep":
      if (result.count > 0) context.wake(wakeOf("reconciler", tenant));
      return;
    case "obligations.release_next":
      return context.wake(wakeOf("compensation", tenant));
    case "lease.release":
      if (change.nextReactor !== null) context.wake(wakeOf(change.nextReactor, tenant));
      context.wake({ of: "journal", tenant, journal: change.journal });
      return;
    case "value.log":
      if (change.through > 0) yield* query("value.forget", { ...change, tenant });
      return context.wake({ of: "value", tenant, key: change.key });
    case "timer.create":
      return context.wake(wakeOf("timers", tenant));
    case "published.put":
    case "reply.create":
      return context.wake({ of: "published", tenant, journal: change.run });
    default:
  }
}

function* applyMove(context: PlanContext, change: Extract<Change, { do: "slot.set" }>, tenant: string): Plan<void> {
  const move = yield* moveSlot(context, change.journal, change.event);
  // Another run may have the slot now, or this one again.
  if (move !== undefined) context.wake(wakeOf("recovery", tenant));
}

function* createSlot(context: PlanContext, slot: Extract<Change, { do: "slot.create" }>, tenant: string): Plan<void> {
  const row = yield* queryRow("slot.create", { ...slot, tenant });
  if (row === undefined) throw yield* refusalOf(slot, tenant);
  if (slot.state !== "QUEUED") return;
  context.partitions.enter(Number(row.queue), slot.key, slot.class, slot.weight);
  context.wake(wakeOf("recovery", tenant));
}

/** Only processes that serve this tenant, and for a run this workflow, need to check. */
export function wakeOf(reactor: string, tenant: string, workflow = ""): WakeHint {
  return { of: "reactor", reactor, tenant, ...(workflow === "" ? {} : { workflow }) };
}

/** Counts the note, then writes it: parking and ending conflict with the row lock of the counter. */
function* createNote(context: PlanContext, note: Extract<Change, { do: "note.create" }>, tenant: string): Plan<void> {
  const { kind, body, required } = note;
  for (let { journal } = note; ; ) {
    const sent = yield* sendNote(context, { tenant, journal }, kind, body, required);
    if (sent !== undefined || !note.orAncestor) return;
    const parent = (yield* queryRow("run.parent", { journal }))?.parent ?? null;
    if (parent === null) return;
    journal = Number(parent);
  }
}

export function* sendNote(
  context: PlanContext,
  to: { readonly tenant: string; readonly journal: number },
  kind: string,
  body: string,
  required: boolean,
): Plan<number | undefined> {
  const { tenant, journal } = to;
  const row = yield* queryRow("note.count", { tenant, journal });
  if (row === undefined) {
    if (!required) return undefined;
    throw new TapeError("TAPE_RUN_ENDED", "the run has ended and takes no more notes", { journal });
  }
  const seq = Number(row.notes);
  if (required && seq - Number(row.begins_notes) > context.limits.inboxNotes) {
    const message = `the inbox is full: ${context.limits.inboxNotes} notes is the limit`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "inboxNotes", journal });
  }
  yield* query("note.create", { journal, seq, kind, body });
  const queued = row.queue !== null && (yield* noteSlot(context, journal, kind, body));
  if (queued) context.wake(wakeOf("recovery", row.tenant, row.workflow));
  else if (row.wakes !== null) context.wake(wakeOf(row.wakes, row.tenant, row.workflow));
  context.wake({ of: "journal", tenant, journal });
  return seq;
}

export function* refusalOf(change: Change, tenant: string): Plan<TapeError> {
  const code = refusals[change.do] ?? "TAPE_INVARIANT";
  switch (change.do) {
    case "effect.status": {
      const { nonce: _secret, ...about } = change;
      return new TapeError(
        code,
        `effect ${change.pos}.${change.sub} cannot become ${change.to} from its current status`,
        about,
      );
    }
    case "run.phase":
      return new TapeError(code, `the run cannot become ${change.to} from its current status`, { ...change });
    case "business_key.claim": {
      const { scope, businessKey } = change;
      const owner = yield* queryRow("business_key.find", { tenant, scope, businessKey });
      const run = owner?.run_id;
      return new TapeError(code, `${scope} ${businessKey} belongs to run ${run}`, { scope, businessKey, run });
    }
    case "budget.reserve":
    case "budget.charge":
      return yield* budgetRefusal(code, change, tenant);
    case "lease.release":
      return new TapeError(code, `unread notes after ${change.notesTaken} are in the inbox`, { ...change });
    case "run.create": {
      const { id } = change;
      const taken =
        (yield* queryRow("run.find", { tenant, id })) ?? (yield* queryRow("tombstone.find", { tenant, id }));
      if (taken !== undefined) return new TapeError(code, `run ${id} exists already, or was deleted`, { id });
      return new TapeError("TAPE_ILLEGAL_TRANSITION", "a run that is ending or stuck cannot start children", { id });
    }
    case "published.put":
      return new TapeError(code, `${change.name}: the run has published as many names as it may`, {
        ...{ limit: "publishedNames", name: change.name },
      });
    case "slot.create":
      return unknownQueue(change.queue);
    case "slot.assert_unnested": {
      const { queue, key } = change;
      const message = `a run above holds a slot of queue ${queue} until its children have ended`;
      return new TapeError(code, message, { queue, key });
    }
    case "value.put":
      return new TapeError(code, `${change.key} does not have version ${change.version - 1}`, { key: change.key });
    default:
      return new TapeError(code, `${change.do} is not possible in the current state`, { ...change });
  }
}

/** A charge is refused only if it would release more than is reserved, or if its unit is one too many. */
function* budgetRefusal(
  code: ErrorCode,
  change: Extract<Change, { do: "budget.reserve" | "budget.charge" }>,
  tenant: string,
): Plan<TapeError> {
  const { by, run, unit, max } = change;
  const { others } = (yield* queryRow("budget.others", { tenant, by, run, unit }))!;
  if (Number(others) >= max) {
    const message = `${unit}: the run and its descendants have spent as many units as they may`;
    return new TapeError("TAPE_TOO_LARGE", message, { limit: "budgetUnits", unit });
  }
  const message =
    change.do === "budget.reserve"
      ? `reserving ${change.amount} millionths of ${unit} would exceed the cap`
      : `${change.reserved} millionths of ${unit} are not reserved`;
  return new TapeError(code, message, { ...change });
}

export const unknownQueue = (queue: string): TapeError => notFound("queue", queue);

/** Token first: a stale owner learns that it is stale, whatever else is wrong with its write. */
export function* explainRefusal(fence: Fence, after: number): Plan<TapeError> {
  return refusalFromRow(fence, after, yield* whyFenced(fence));
}

/** The lease row that a fence was compared with; undefined also if it belongs to another tenant. */
export function* whyFenced({ tenant, journal }: Fence): Plan<RowOf<"fence.explain"> | undefined> {
  return yield* queryRow("fence.explain", { tenant, journal });
}

/**
 * Before rejecting: the append may be the repeat of one that was written and whose response was lost. Then it gets the
 * same result, which is true whatever happened since: the records exist, under this token. Only for a writer that still
 * holds the term, or that ended it by this very write; otherwise the writer is stale.
 */
export function* appendRetryPlan(fence: Fence, entry: CheckedEntry): Plan<AppendResult> {
  const { journal, token } = fence;
  const { after, records, bodies } = entry;
  const row = yield* whyFenced(fence);
  const refusal = refusalFromRow(fence, after, row);
  const stale = refusal.code === "TAPE_FENCED";
  if (row === undefined || (stale && !entry.releases)) throw refusal;
  const written = yield* queryRows("journal.page", { journal, from: after + 1, limit: records.length, tenant: null });
  const isSame = (record: RowOf<"journal.page">, k: number): boolean =>
    record.token === String(token) && record.kind === records[k]!.kind && record.body === bodies[k];
  if (written.length < records.length || !written.every(isSame)) throw refusal;
  const { notesTaken } = records.at(-1)!.data as { notesTaken?: number };
  // A term ends with as many notes as were taken; later ones do not concern its writer.
  const notes = stale && row.kind !== "name" ? notesTaken! : Number(row.notes);
  return { head: after + records.length, notes };
}

export function refusalFromRow(fence: Fence, after: number, row: RowOf<"fence.explain"> | undefined): TapeError {
  const stale =
    row === undefined || row.token !== String(fence.token) || row.nonce !== String(fence.nonce) || Boolean(row.doomed);
  if (stale) return staleError(fence, row);
  const head = Number(row.head);
  return new TapeError("TAPE_NOT_HEAD", `the journal's head is ${head}, not ${after}`, {
    journal: fence.journal,
    head,
    after,
  });
}

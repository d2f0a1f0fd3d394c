import { type Change, isRequired, refusals } from "../../../model/changes.ts";
import { TapeError } from "../../../model/errors.ts";
import type { Fence } from "../../../model/fence.ts";
import { changesOf, type RecordContext } from "../../../model/projection.ts";
import type { JournalKind } from "../../../model/rows.ts";
import type { AppendResult, WakeHint } from "../../contract/store.ts";
import { staleError } from "../../validate/arguments.ts";
import type { CheckedEntry } from "../../validate/entry.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { auditRecords } from "./audit.ts";

/** The one door through which records enter a journal: fence, records, and what the records change, or nothing. */
export function* appendPlan(context: PlanContext, fence: Fence, entry: CheckedEntry): Plan<AppendResult> {
  const { tenant, journal, token, nonce } = fence;
  const { after, records } = entry;
  const sql = context.locksRelease && entry.releases ? "fence.release" : "fence";
  const row = yield* queryRow(sql, { tenant, journal, token, nonce, after });
  if (row === undefined) return yield* appendRetryPlan(fence, entry);
  const place = recordContextOf(context, fence, row);
  // Changes are computed before the first write: a record in the wrong journal is refused with nothing to undo.
  const changes = records.flatMap((record) => changesOf(record, place));
  // What only asks, and would see no other record of this entry, asks first too.
  const [first, ...others] = changes;
  const asks = records.length === 1 && first?.do === "run.assert_settled";
  if (asks) yield* applyChange(context, first, place.tenant);
  if (records.length === 1) for (const change of changes) yield* assertNotesTaken(change, row);
  for (const [k, record] of records.entries()) {
    const seq = after + 1 + k;
    const { count } = yield* query("record.append", { journal, seq, token, kind: record.kind, body: entry.bodies[k]! });
    if (count > 0) continue;
    if (k === 0) return yield* appendRetryPlan(fence, entry);
    throw yield* explainRefusal(fence, after);
  }
  for (const change of asks ? others : changes) yield* applyChange(context, change, place.tenant);
  yield* auditRecords(place, entry);
  return { head: after + records.length, notes: Number(row.notes) };
}

/** The counter stands still under the fence's lock (see fence.release): no need to find out by writing. */
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
    keepVersions: context.limits.valueHistory,
    allocate: () => context.allocate(),
  };
}

/**
 * Carries out one change by the statement of its name; throws its refusal where its condition does not hold. The tenant
 * is the fence's: statements that reach into a journal which a record names compare it.
 */
export function* applyChange(context: PlanContext, change: Change, tenant: string): Plan<void> {
  if (change.do === "note.create") return yield* createNote(context, change, tenant);
  const answer = yield* query(change.do, { ...change, tenant });
  if (answer.count === 0 && isRequired(change)) throw yield* refusalOf(change, tenant);
  switch (change.do) {
    case "lease.create":
      if (change.nextReactor !== null) context.wake(wakeOf(change.nextReactor, tenant, change.workflow));
      return;
    case "lease.wake":
      return context.wake(wakeOf(change.nextReactor, tenant));
    case "items.sweep":
      if (answer.count > 0) context.wake(wakeOf("reconciler", tenant));
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
    default:
  }
}

/** Only those who serve this tenant, and this workflow where it is a run's, need to look. */
export function wakeOf(reactor: string, tenant: string, workflow = ""): WakeHint {
  return { of: "reactor", reactor, tenant, ...(workflow === "" ? {} : { workflow }) };
}

/** Counts the note, then writes it: the counter's row lock is what parking and ending conflict with. */
function* createNote(context: PlanContext, note: Extract<Change, { do: "note.create" }>, tenant: string): Plan<void> {
  const { kind, body, required: must } = note;
  for (let { journal } = note; ; ) {
    const sent = yield* sendNote(context, { tenant, journal }, kind, body, must);
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
  must: boolean,
): Plan<number | undefined> {
  const { tenant, journal } = to;
  const row = yield* queryRow("note.count", { tenant, journal });
  if (row === undefined) {
    if (!must) return undefined;
    throw new TapeError("TAPE_RUN_ENDED", "the run has ended: its inbox takes no more notes", { journal });
  }
  const seq = Number(row.notes);
  if (must && seq > context.limits.inboxNotes) {
    const message = `the inbox has taken ${context.limits.inboxNotes} notes, which is all it takes`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "inboxNotes", journal });
  }
  yield* query("note.create", { journal, seq, kind, body });
  if (row.wakes !== null) context.wake(wakeOf(row.wakes, row.tenant, row.workflow));
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
        `effect ${change.pos}.${change.sub} cannot become ${change.to} from where it is`,
        about,
      );
    }
    case "run.phase":
      return new TapeError(code, `the run cannot become ${change.to} from where it is`, { ...change });
    case "business_key.claim": {
      const { scope, businessKey } = change;
      const owner = yield* queryRow("business_key.find", { tenant, scope, businessKey });
      const run = owner?.run_id;
      return new TapeError(code, `${scope} ${businessKey} belongs to run ${run}`, { scope, businessKey, run });
    }
    case "budget.reserve":
      return new TapeError(code, `reserving ${change.amount} millionths of ${change.unit} would exceed the cap`, {
        ...change,
      });
    case "lease.release":
      return new TapeError(code, `notes beyond ${change.notesTaken} wait in the inbox`, { ...change });
    case "run.create": {
      const { id } = change;
      const taken =
        (yield* queryRow("run.find", { tenant, id })) ?? (yield* queryRow("tombstone.find", { tenant, id }));
      if (taken !== undefined) return new TapeError(code, `run ${id} exists already, or existed`, { id });
      return new TapeError("TAPE_ILLEGAL_TRANSITION", "a run that is ending or stuck starts no children", { id });
    }
    case "value.put":
      return new TapeError(code, `${change.key} is not at version ${change.version - 1}`, { key: change.key });
    default:
      return new TapeError(code, `${change.do} is not possible from here`, { ...change });
  }
}

/** Token first: a stale owner is told that it is stale, whatever else is wrong with its write. */
export function* explainRefusal(fence: Fence, after: number): Plan<TapeError> {
  return refusalFromRow(fence, after, yield* whyFenced(fence));
}

/** The lease row that a fence was compared with; undefined also where it is another tenant's. */
export function* whyFenced({ tenant, journal }: Fence): Plan<RowOf<"fence.explain"> | undefined> {
  return yield* queryRow("fence.explain", { tenant, journal });
}

/**
 * Instead of a refusal: it may be the repeat of an append that landed and whose answer was lost. Then it is answered as
 * it was, which is true whatever happened since: the records are there, under this token. Only a writer who still holds
 * the term is told so, or one who ended it by this very write; a stale one is told that it is stale.
 */
export function* appendRetryPlan(fence: Fence, entry: CheckedEntry): Plan<AppendResult> {
  const { journal, token } = fence;
  const { after, records, bodies } = entry;
  const row = yield* whyFenced(fence);
  const refusal = refusalFromRow(fence, after, row);
  const stale = refusal.code === "TAPE_FENCED";
  if (row === undefined || (stale && !entry.releases)) throw refusal;
  const written = yield* queryRows("journal.page", { journal, from: after + 1, limit: records.length, tenant: null });
  const isSame = (one: RowOf<"journal.page">, k: number): boolean =>
    one.token === String(token) && one.kind === records[k]!.kind && one.body === bodies[k];
  if (written.length < records.length || !written.every(isSame)) throw refusal;
  const { notesTaken } = records.at(-1)!.data as { notesTaken?: number };
  // A term ends with as many notes as were taken; what came since is not its writer's any more.
  const notes = stale && row.kind !== "name" ? notesTaken! : Number(row.notes);
  return { head: after + records.length, notes };
}

export function refusalFromRow(fence: Fence, after: number, row: RowOf<"fence.explain"> | undefined): TapeError {
  const stale =
    row === undefined || row.token !== String(fence.token) || row.nonce !== String(fence.nonce) || Boolean(row.doomed);
  if (stale) return staleError(fence, row);
  const head = Number(row.head);
  return new TapeError("TAPE_NOT_HEAD", `the journal ends at ${head}, not at ${after}`, {
    journal: fence.journal,
    head,
    after,
  });
}

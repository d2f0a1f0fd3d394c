import { decode } from "../../../base/codec.ts";
import { erasedData, erasedText } from "../../../model/erasure.ts";
import { TapeError } from "../../../model/errors.ts";
import type { ItemResult } from "../../../model/lease.ts";
import { notFound } from "../../../model/not-found.ts";
import { deadlineTimer, encodeBody, valueWritten } from "../../../model/projection.ts";
import type { Credential, RecordData } from "../../../model/records.ts";
import type { ScheduleRow } from "../../../model/rows.ts";
import type { CreateResult, ScheduleAudit, ValueCondition } from "../../contract/store.ts";
import { scheduleRowOf } from "../../decode-rows.ts";
import { noAttempt } from "../../validate/arguments.ts";
import type { StartData } from "../../validate/start.ts";
import { type Plan, type PlanContext, query, queryRow, queryRows } from "../plan.ts";
import type { RowOf } from "../statements.gen.ts";
import { applyChange, sendNote, wakeOf } from "./append.ts";
import { approvals } from "./approvals.ts";
import { auditPlan, operatorActionBy } from "./audit.ts";
import { createPlan, type FirstTerm } from "./create.ts";
import { admitSchedule } from "./quotas.ts";
import { type ResultStorage, recordOperatorAction } from "./service.ts";

/** Writes that need no lease: each is one conditional transaction, and the condition is its fence. */

export function* signalPlan(
  context: PlanContext,
  tenant: string,
  run: string,
  data: RecordData<"signal.sent">,
  mustMatch = false,
): Plan<{ n: number; duplicate: boolean }> {
  const byToken = data.via?.token !== undefined;
  const found = yield* queryRow("signal.find", { tenant, id: run, name: data.name, byToken });
  if (found === undefined) throw notFound("run", run);
  const journal = Number(found.journal);
  const guarded = found.restricted || (byToken && data.binds !== undefined);
  const approves = guarded ? yield* approvals({ journal, root: Number(found.root), run }, data) : [];
  const signal = approves.length === 0 ? data : { ...data, approves };
  const send = note(context, { tenant, journal }, "signal.sent", signal);
  const sent = yield* noteOnce(journal, data.key, mustMatch ? answerOpen(journal, run, data, send) : send);
  if (!sent.duplicate) {
    for (const pos of approves) yield* query("gate.approve", { run: journal, pos, note: String(sent.n) });
    const audited = {
      action: "run.signal",
      reason: data.reason ?? `signal ${data.name}`,
      always: data.reason !== undefined,
    };
    yield* auditNote({ tenant, journal, run }, audited, data, { name: data.name, n: sent.n });
  }
  return sent;
}

/**
 * The signal, if an open gate binds what it binds and no other answer was first. The gate is marked after the note, as
 * in every append: the order of the locks is the same, and of two answers one finds the mark.
 */
function* answerOpen(
  journal: number,
  run: string,
  { name, binds }: RecordData<"signal.sent">,
  send: Plan<number | undefined>,
): Plan<number | undefined> {
  const gates = yield* queryRows("gate.waiting", { run: journal, name });
  const gate = gates.find((open) => open.binds === (binds ?? null) && open.called === null && open.callback === null);
  if (gate === undefined) throw staleGate(run, name, gates.length > 0);
  const n = (yield* send)!;
  const { count } = yield* query("gate.answer", { run: journal, pos: Number(gate.pos), note: n });
  if (count === 0) throw staleGate(run, name, true);
  return n;
}

function staleGate(run: string, gate: string, isOpen: boolean): TapeError {
  const why = isOpen ? "it binds another call, or has an answer" : "it is not open";
  return new TapeError("TAPE_GATE_STALE", `gate ${gate} of run ${run} does not match: ${why}`, { run, gate });
}

export function* cancelPlan(
  context: PlanContext,
  tenant: string,
  run: string,
  data: RecordData<"cancel.requested">,
  key: string | undefined,
): Plan<{ n: number }> {
  const journal = yield* runJournal(tenant, run);
  const { n, duplicate } = yield* noteOnce(-journal, key, note(context, { tenant, journal }, "cancel.requested", data));
  if (!duplicate)
    yield* auditNote(
      { tenant, journal, run },
      { action: "run.cancel", reason: data.reason || "no reason given", always: false },
      data,
      { n },
    );
  return { n };
}

/** Roles whose every note is an operator action; notes of programs are only in the inboxes. */
const operators: ReadonlySet<string> = new Set(["operator", "admin"]);

function* auditNote(
  { tenant, journal, run }: { readonly tenant: string; readonly journal: number; readonly run: string },
  { action, reason, always }: { readonly action: string; readonly reason: string; readonly always: boolean },
  { by, via }: { readonly by?: string | undefined; readonly via?: Credential },
  detail: unknown,
): Plan<void> {
  if (via === undefined || !(always || operators.has(via.role))) return;
  const body = encodeBody(operatorActionBy(action, { by: by ?? via.name, reason, via }, detail));
  yield* auditPlan({ tenant, journal, subject: run, body });
}

/**
 * Senders of one key queue on its row; the second finds it taken, with the number of the first note. Keys of signals
 * are stored under the journal's number, those of cancellations under its negative, so that they never collide.
 */
function* noteOnce(
  journal: number,
  key: string | undefined,
  send: Plan<number | undefined>,
): Plan<{ n: number; duplicate: boolean }> {
  if (key === undefined) return { n: (yield* send)!, duplicate: false };
  const { count } = yield* query("note.key", { journal, key, n: 0 });
  if (count === 0) return { n: Number((yield* queryRow("note.find", { journal, key }))?.n), duplicate: true };
  const n = (yield* send)!;
  yield* query("note.key", { journal, key, n });
  return { n, duplicate: false };
}

export function* note(
  context: PlanContext,
  to: { readonly tenant: string; readonly journal: number },
  kind: string,
  data: object,
): Plan<number | undefined> {
  return yield* sendNote(context, to, kind, encodeBody(data), true);
}

function* runJournal(tenant: string, run: string): Plan<number> {
  const row = yield* queryRow("run.find", { tenant, id: run });
  if (row === undefined) throw notFound("run", run);
  return Number(row.journal);
}

export interface AttemptRef {
  readonly run: number;
  readonly pos: number;
  readonly sub?: number;
  readonly token: bigint;
  readonly nonce: bigint;
}

export interface TimerRef {
  readonly tenant: string;
  readonly run: number;
  readonly pos: number;
  readonly purpose: string;
}

/** A late response goes to the inbox of the journal that has authority over the effect now, and wakes it. */
export function* evidencePlan(
  context: PlanContext,
  tenant: string,
  attempt: AttemptRef,
  evidence: { happened: boolean; value?: unknown; error?: unknown },
): Plan<{ journal: number; n: number }> {
  const { run, pos, sub = 0, token, nonce } = attempt;
  const effect = yield* queryRow("effect.find", { tenant, run, pos, sub });
  if (effect === undefined) throw noAttempt(attempt);
  const current = effect.attempt_token === String(token) && effect.attempt_nonce === String(nonce);
  const sent = current ? Number(effect.attempt) : yield* absentAttempt(effect.item, token);
  if (sent === undefined) throw noAttempt(attempt);
  const journal = Number(effect.authority);
  const left: RecordData<"effect.evidence"> = {
    run,
    pos,
    sub,
    attempt: sent,
    token: String(token),
    ...evidence,
  };
  // An erased run gets no payload any more.
  const data = effect.args === erasedText ? (erasedData("effect.evidence", left) as typeof left) : left;
  const n = (yield* note(context, { tenant, journal }, "effect.evidence", data))!;
  // The authority may have changed since it was read. Read again under a lock (after the inbox, in the order in which
  // appends lock): from here on either the new authority sees our note in the old inbox, or we notify it, too.
  const now = Number((yield* queryRow("effect.lock", { run, pos, sub }))?.authority);
  if (now === journal) return { journal, n };
  return { journal: now, n: (yield* note(context, { tenant, journal: now }, "effect.evidence", data))! };
}

/** More records than an effect has that is sent again as often as its policy can say. */
const maxItemRecords = 1_000;

/**
 * The attempt under this token that was taken for absent, after which the effect was sent again. Its item's journal has
 * the token; the nonce belongs to a term that is over. The evidence can only make the effect a surplus one.
 */
function* absentAttempt(item: number | null, token: bigint): Plan<number | undefined> {
  if (item === null) return undefined;
  const rows = yield* queryRows("journal.page", { journal: item, from: 1, limit: maxItemRecords, tenant: null });
  for (const { kind, body } of rows) {
    if (kind !== "effect.settled") continue;
    const { absent } = decode(body) as RecordData<"effect.settled">;
    if (absent?.token === String(token)) return absent.attempt;
  }
  return undefined;
}

/** The note of a deadline that has passed: it cancels the run, in the transaction that fires the timer. */
const deadlinePassed: RecordData<"cancel.requested"> = { reason: "deadline", by: "timers", deadline: true };

export function* fireTimerPlan(context: PlanContext, timer: TimerRef): Plan<boolean> {
  const { tenant, run, pos, purpose } = timer;
  const { count } = yield* query("timer.fire", { tenant, run, pos, purpose });
  if (count === 0) return false;
  const to = { tenant, journal: run };
  if (purpose === deadlineTimer.purpose)
    yield* sendNote(context, to, "cancel.requested", encodeBody(deadlinePassed), false);
  else {
    const data: RecordData<"timer.fired"> = { pos, purpose };
    yield* sendNote(context, to, "timer.fired", encodeBody(data), false);
  }
  return true;
}

export function* putValuePlan(
  context: PlanContext,
  tenant: string,
  key: string,
  value: string | null,
  when: ValueCondition,
): Plan<RowOf<"value.get">> {
  for (;;) {
    const row = yield* queryRow("value.get", { tenant, key });
    const version = row === undefined ? 0 : Number(row.version);
    const alive = row !== undefined && row.value !== null;
    if (when === "must_create" ? alive : typeof when === "object" && when.version !== version) {
      throw new TapeError("TAPE_VERSION_CONFLICT", `${key} has version ${version}`, { key, version });
    }
    const next = { tenant, source: null, key, version: version + 1, value };
    const [put, ...rest] = valueWritten(next, context.limits.valueHistory);
    // Another writer was faster (statements of two transactions can interleave): read and decide again.
    if ((yield* query("value.put", put)).count === 0) continue;
    for (const change of rest) yield* applyChange(context, change, tenant);
    // Not decoded: a value may be nested as deep as the limit, so a result that contains it would exceed it.
    return { ...(yield* queryRow("value.get", { tenant, key }))! };
  }
}

/**
 * Stores the result of a write without the value: the value is read from its history, until a deletion erases it. Then
 * the repeated call supplies it, because its value is the same.
 */
export function withoutValue(tenant: string, key: string, text: string): ResultStorage<RowOf<"value.get">> {
  return {
    kept: ({ value: _value, ...row }) => row,
    *restored(row) {
      if (Object.hasOwn(row, "value")) return row; // stored by an older version
      const version = Number(row.version);
      const found = yield* queryRow("value.history", { tenant, key, after: version - 1, limit: 1, pageBytes: 1 });
      return { ...row, value: found !== undefined && Number(found.version) === version ? found.value : text };
    },
  };
}

export function* putSchedulePlan(
  context: PlanContext,
  tenant: string,
  row: Omit<ScheduleRow, "tenant" | "version">,
  seen: Pick<ScheduleRow, "version" | "spec"> | null | undefined,
  audit?: ScheduleAudit,
): Plan<ScheduleRow> {
  const { id, spec, nextAt, paused } = row;
  const change = { tenant, id, spec, nextAt, paused };
  const written = seen
    ? yield* queryRow("schedule.change", { ...change, version: seen.version, seen: seen.spec })
    : yield* putPlan(change, seen === null);
  if (written === undefined) {
    throw new TapeError("TAPE_VERSION_CONFLICT", `schedule ${id} has changed since it was read`, { id });
  }
  if (audit !== undefined) {
    const { changed, ...who } = audit;
    yield* recordOperatorAction("schedule.change", who, { tenant, schedule: id, changed });
  }
  context.wake(wakeOf("timers", tenant));
  return scheduleRowOf(written);
}

function* putPlan(change: Omit<ScheduleRow, "version">, fresh: boolean): Plan<RowOf<"schedule.put"> | undefined> {
  const written = yield* queryRow("schedule.put", { ...change, fresh, admitted: false });
  if (written !== undefined) return written;
  const { tenant, id } = change;
  if ((yield* queryRow("schedule.find", { tenant, id })) !== undefined) return undefined;
  yield* admitSchedule(tenant);
  return yield* queryRow("schedule.put", { ...change, fresh, admitted: true });
}

export function* fireSchedulePlan(
  context: PlanContext,
  firing: {
    tenant: string;
    id: string;
    version: number;
    nextAt: number | null;
    spec: { from: string; to: string } | undefined;
  },
  runs: readonly RecordData<"run.created">[],
): Plan<boolean> {
  const { spec, ...rest } = firing;
  const { count } = yield* query("schedule.fire", { ...rest, seen: spec?.from ?? null, spec: spec?.to ?? null });
  if (count === 0) return false;
  for (const run of runs) yield* createPlan(context, firing.tenant, run);
  context.wake(wakeOf("timers", firing.tenant));
  return true;
}

/** Creates or finds the run and sends its signals, all of it or nothing. */
export function* startPlan(
  context: PlanContext,
  tenant: string,
  { data, signals }: StartData,
  first?: FirstTerm,
): Plan<CreateResult> {
  const created = yield* createPlan(context, tenant, data, first, signals.length > 0);
  let notes = created.term?.notes ?? 0;
  for (const signal of signals) notes = Math.max(notes, (yield* signalPlan(context, tenant, data.id, signal)).n);
  return created.term === undefined ? created : { ...created, term: { ...created.term, notes } };
}

/** As in a batch, each run succeeds or fails alone: a rejected creation has written nothing yet. */
export function* createAllPlan(
  context: PlanContext,
  tenant: string,
  runs: readonly ItemResult<{ readonly value: StartData }>[],
): Plan<ItemResult<CreateResult>[]> {
  const results: ItemResult<CreateResult>[] = [];
  // Always in the same order, so that two calls with the same runs do not deadlock.
  const idOf = (k: number): string => {
    const run = runs[k]!;
    return run.ok ? run.value.data.id : "";
  };
  const order = [...runs.keys()].sort((a, b) => (idOf(a) < idOf(b) ? -1 : 1));
  for (const k of order) {
    const run = runs[k]!;
    if (!run.ok) {
      results[k] = run;
      continue;
    }
    try {
      results[k] = { ok: true, ...(yield* startPlan(context, tenant, run.value)) };
    } catch (error) {
      // With signals something may have been written; such a run is the only one of its call.
      if (!(error instanceof TapeError) || run.value.signals.length > 0) throw error;
      results[k] = { ok: false, error };
    }
  }
  return results;
}

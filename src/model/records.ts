import { z } from "zod";
import { approversShape } from "./approvers.ts";
import { isRouted } from "./build.ts";
import { buildName, buildSchemas } from "./build-records.ts";
import { childSchemas } from "./child-records.ts";
import { generationSchemas } from "./continued-shape.ts";
import { credential } from "./credential.ts";
import { forkShape } from "./fork-shape.ts";
import { retentionSchemas } from "./retention-records.ts";
import { scopeSchemas } from "./scope-records.ts";
import { startShape } from "./start-shape.ts";
import { talkSchemas } from "./talk-records.ts";

export type { Credential } from "./credential.ts";
export type { ForkData } from "./fork-shape.ts";

/**
 * Journal records: a closed, versioned union. An unknown kind is an error and is never skipped. projection.ts defines
 * how each kind changes the store's tables; nothing else may change them.
 */
export const recordVersion = 1;

const text = z.string();
const name = z.string().min(1);
const count = z.int().nonnegative();
/** An obligation's number at the position of its effect, which is 0. */
const obligationSub = z.int().positive();
const journal = z.int().positive();
const ms = z.number().nonnegative();
/** Becomes a time in a column of whole milliseconds. An integer, so that no store rounds what another rejects. */
const delayMs = z.int().nonnegative();
const positiveMs = z.int().positive();
/** A fencing token in a record: a decimal string, because JSON numbers round above 2^53. */
const tokenText = z.string().regex(/^\d{1,19}$/);
/** A user's value: anything that the codec can encode. */
const value = z.unknown();
const labels = z.record(z.string(), z.string());
/** Whole millionths of a unit, so that adding cents a million times does not round. */
const amounts = z.record(z.string(), z.int().nonnegative());
const semantics = z.enum(["idempotent", "non_idempotent", "read"]);
const dispatch = z.enum(["inline", "outbox"]);

export const termReasons = [
  "start",
  "wake",
  "release",
  "stalled",
  "recovery",
  "timeout",
  "manual",
  "cancellation",
] as const;
/** Why a term started. */
export type TermReason = (typeof termReasons)[number];

export const termEnds = [
  "released",
  "drained",
  "expired",
  "manual",
  "stalled",
  "cancelled",
  "superseded",
  "never_confirmed",
] as const;
/** How a term ended. */
export type TermEnd = (typeof termEnds)[number];

const holder = z.strictObject({ owner: name, label: text, reactor: name, ttlMs: ms });
const termFigures = z.strictObject({
  renewals: count,
  longestGapMs: ms,
  progress: count,
  progressNote: text.optional(),
});
/** An effect of a run, at a position: sub 0 is the effect, 1 its compensation, 2… compensations of surplus effects. */
const effectRef = { run: journal.optional(), pos: count, sub: count.optional() };
const compensation = {
  name,
  semantics,
  key: name,
  args: value,
};

const schemas = {
  "run.created": z.strictObject({
    id: name,
    workflow: name,
    version: text.optional(),
    input: value,
    inputHash: name,
    labels: labels.optional(),
    budget: amounts.optional(),
    parent: z.strictObject({ journal, pos: count }).optional(),
    root: journal.optional(),
    schedule: name.optional(),
    /** The starters (`token:ID` or `name:NAME`), for gates that they may not answer. */
    starters: z.array(name).exactOptional(),
    forkedFrom: name.optional(),
    /** The run that started it as a detached child: a link, and nothing else. */
    startedBy: name.exactOptional(),
    fork: forkShape.optional(),
    /** The input is the output of its schema: it was validated. */
    checked: z.literal(true).optional(),
    /** A holder that writes nothing for longer than this loses the run. */
    maxStallMs: positiveMs.exactOptional(),
    /** The run is cancelled this long after its first term began, unless it has ended. */
    deadlineMs: positiveMs.exactOptional(),
    /** Present if the same transaction grants the first term to the creator. */
    holder: holder.optional(),
    /** The build that the run is pinned to with its first term. */
    build: buildName.exactOptional(),
    ...startShape,
  }),
  "run.decided": z.strictObject({ cause: z.enum(["completed", "failed", "cancelled"]), outcome: value }),
  "run.compensating": z.strictObject({}),
  "run.ended": z.strictObject({
    status: z.enum(["COMPLETED", "FAILED", "CANCELLED", "COMPENSATED"]),
    /** Present if this record also decides the outcome; otherwise the decision's outcome stays. */
    outcome: value.optional(),
    notesTaken: count,
    /** The parent to notify in the same transaction. */
    parent: z.strictObject({ journal, pos: count, id: name }).optional(),
    term: termFigures.optional(),
    /** How long the tree is kept after its end, as the workflow's code says. */
    retainMs: positiveMs.exactOptional(),
  }),
  /** `effects`: those that an operator must resolve; resolving one resumes the run. */
  "run.stuck": z.strictObject({
    reason: text,
    detail: value.optional(),
    effects: z.array(z.strictObject({ run: journal, pos: count, sub: count })).optional(),
  }),
  "run.unstuck": z.strictObject({ to: z.enum(["LIVE", "ENDING", "COMPENSATING"]) }),
  /**
   * `pos`: the operation whose failure ended the attempt; it is retried. `from`, `to`: the operations requested after
   * the failure, to clean up; they are executed again, at positions from `to` on.
   */
  "run.retried": z.strictObject({
    attempt: count,
    error: value,
    delayMs,
    pos: count.optional(),
    from: count.optional(),
    to: count.optional(),
    /** `from` and `to` of other lanes. */
    lanes: z.array(z.strictObject({ from: count, to: count })).optional(),
  }),
  ...generationSchemas,
  ...buildSchemas,
  ...retentionSchemas,
  "store.restored": z.strictObject({ epoch: count, reason: text, ended: count }),
  "lease.named": z.strictObject({ name }),
  "term.started": z.strictObject({
    ...holder.shape,
    reason: z.enum(termReasons),
    by: text.optional(),
    auditReason: text.optional(),
    /** The slot that the run got with this term. */
    admitted: z.strictObject({ queue: name, key: text, waitedMs: ms }).exactOptional(),
    /** The build that the run is pinned to with this term. */
    build: buildName.exactOptional(),
    /** How the previous term ended, if its holder did not record it. */
    previous: z.strictObject({ ...termFigures.shape, token: tokenText, endReason: z.enum(termEnds) }).optional(),
  }),
  "term.ended": z.strictObject({
    reason: z.enum(termEnds),
    /** Notes taken so far. The store refuses the end of a run's term while more are pending. */
    notesTaken: count,
    /** The reactor that should hold the journal next, after `delayMs`. Absent: none until a note arrives. */
    nextReactor: name.refine((reactor) => !isRouted(reactor), "only the store names a build here").optional(),
    delayMs: delayMs.optional(),
    waitingFor: z.array(text).optional(),
    term: termFigures.optional(),
    /** A write failed, so that results of bodies that were called in this term may be missing. */
    unrecorded: z.literal(true).exactOptional(),
  }),
  "notes.taken": z.strictObject({ through: count }),
  "step.done": z.strictObject({
    pos: count,
    name,
    value: value.optional(),
    error: value.optional(),
    /** Rows of the author's tables were committed with it. */
    transaction: z.literal(true).optional(),
  }),
  /**
   * An attempt of a step or decision that is retried. The last attempt is in step.done or decision.made. `timer`: a
   * timer ends the pause, so that the run can park; otherwise the driver waits under its lease. `outage`: when the
   * failures began, how long they have lasted, and whether the run waits for an operator now.
   */
  "step.failed": z.strictObject({
    pos: count,
    name,
    attempt: z.int().positive(),
    error: value,
    delayMs,
    timer: z.literal(true).exactOptional(),
    outage: z.strictObject({ since: count, ms: delayMs, gaveUp: z.literal(true).exactOptional() }).exactOptional(),
  }),
  "decision.made": z.strictObject({
    pos: count,
    name,
    value: value.optional(),
    error: value.optional(),
    model: text.optional(),
    request: value.optional(),
    response: value.optional(),
    rationale: text.optional(),
    policy: text.optional(),
    usage: z.record(z.string(), z.number()).optional(),
  }),
  "sample.taken": z.strictObject({ pos: count, name, value }),
  /** Positions from `lane` millions on belong to the branch with this name. */
  "lane.opened": z.strictObject({ lane: z.int().positive(), name }),
  "patch.marked": z.strictObject({ pos: count, name }),
  "race.won": z.strictObject({ pos: count, winner: count }),
  ...childSchemas,
  ...scopeSchemas,
  "effect.intended": z.strictObject({
    pos: count,
    name,
    connector: name.optional(),
    semantics,
    dispatch,
    key: name,
    businessKey: name.optional(),
    argsHash: name,
    args: value,
    policy: value.optional(),
  }),
  "effect.dispatched": z.strictObject({ ...effectRef, attempt: count, sendWithinMs: delayMs }),
  "effect.settled": z.strictObject({
    ...effectRef,
    to: z.enum(["CONFIRMED", "FAILED", "UNKNOWN", "PENDING", "STUCK"]),
    /** The reason for the status: returned, definite, not_sent, ack_lost, lease_lost, observed, absent, operator, … */
    reason: name,
    value: value.optional(),
    error: value.optional(),
    /** The number of failed attempts when the item takes over. */
    failures: count.optional(),
    /** The last attempt, if it is proven absent. If it happens after all, its sender can still say so. */
    absent: z.strictObject({ attempt: count, token: tokenText }).exactOptional(),
  }),
  "effect.received": z.strictObject({
    pos: count,
    status: name,
    reason: name.optional(),
    value: value.optional(),
    error: value.optional(),
  }),
  "effect.observed": z.strictObject({
    ...effectRef,
    observation: z.enum(["confirmed", "absent", "duplicate", "inconclusive", "error"]),
    detail: value.optional(),
  }),
  "effect.evidence": z.strictObject({
    ...effectRef,
    attempt: count,
    token: tokenText,
    happened: z.boolean(),
    value: value.optional(),
    error: value.optional(),
  }),
  "effect.outcome": z.strictObject({
    /** The effect's run: a root also receives outcomes of its children's effects. */
    run: journal.optional(),
    pos: count,
    sub: count,
    status: name,
    reason: name.optional(),
    value: value.optional(),
    error: value.optional(),
  }),
  "item.opened": z.strictObject({ run: journal, pos: count, sub: count, failures: count.optional() }),
  "obligation.armed": z.strictObject({ ...effectRef, sub: obligationSub, ...compensation }),
  /** Due by request or because a duplicate was observed. If the run fails, run.compensating makes all due. */
  "obligation.due": z.strictObject({ pos: count, sub: obligationSub, reason: text }),
  "obligation.surplus": z.strictObject({
    run: journal.optional(),
    pos: count,
    sub: obligationSub,
    name: name.optional(),
    semantics,
    key: name,
    args: value,
  }),
  "obligation.settled": z.strictObject({
    run: journal.optional(),
    pos: count,
    sub: obligationSub,
    to: z.enum(["COMPENSATED", "UNKNOWN", "PENDING", "STUCK"]),
    reason: name,
    value: value.optional(),
    error: value.optional(),
  }),
  "gate.opened": z.strictObject({
    pos: count,
    name,
    /** Notes seen when it was opened: a bound gate takes no earlier unbound signal. */
    notesSeen: count.optional(),
    payload: value.optional(),
    binds: text.optional(),
    timeoutMs: delayMs.optional(),
    approvers: approversShape.exactOptional(),
    /** Only its token opens it. `json`: the code receives the body's value; `raw`: its text and some headers. */
    callback: z.enum(["json", "raw"]).exactOptional(),
  }),
  "gate.resolved": z.strictObject({
    pos: count,
    /** The number in the inbox of the signal that it took. */
    note: count.optional(),
    to: z.enum(["RECEIVED", "TIMED_OUT", "WITHDRAWN"]),
    value: value.optional(),
  }),
  ...talkSchemas,
  /** `deadline`: the run's deadline timer has fired; the store writes it. */
  "cancel.requested": z.strictObject({
    reason: text,
    by: text.optional(),
    via: credential.exactOptional(),
    deadline: z.literal(true).exactOptional(),
  }),
  /** A further start of a debounced run: this input replaces the earlier one. Only before the run's first term. */
  "start.moved": z.strictObject({
    input: value,
    inputHash: name,
    waitMs: delayMs,
    checked: z.literal(true).exactOptional(),
  }),
  /** `until`: the wall time, if one was given; otherwise the timer fires `delayMs` after the record. */
  "timer.set": z.strictObject({
    pos: count,
    purpose: z.enum(["sleep", "redrive", "reconcile", "deadline"]),
    delayMs,
    until: z.int().nonnegative().optional(),
  }),
  "timer.fired": z.strictObject({ pos: count, purpose: name }),
  "timer.cancelled": z.strictObject({ pos: count, purpose: name }),
  /** `fired`: the run's holder fired the timer with this record; otherwise the inbox has a note of the firing. */
  "sleep.ended": z.strictObject({ pos: count, fired: z.literal(true).optional() }),
  "run.suspected": z.strictObject({ crashes: count }),
  /** A replay timed out: the code did not request the operation of record `seq`. The run is released and retried. */
  "replay.stalled": z.strictObject({ attempt: count, seq: count, awaited: text, waitedMs: ms }),
  "budget.reserved": z.strictObject({ pos: count, rootRun: journal, amounts }),
  /** The call of the reservation at `pos` was lost with its term and runs again: its estimate counts as spent. */
  "budget.presumed": z.strictObject({ pos: count, rootRun: journal, amounts }),
  /**
   * `reservation`: the position of the reservation it closes. Absent: the one at `pos`, closed as the run ended. `over`:
   * how much of `spent` exceeds the reservation.
   */
  "budget.charged": z.strictObject({
    pos: count,
    reservation: count.optional(),
    rootRun: journal,
    spent: amounts,
    reserved: amounts,
    over: amounts.optional(),
  }),
  "value.written": z.strictObject({
    pos: count.optional(),
    key: name,
    version: count,
    value: value.optional(),
    deleted: z.boolean().optional(),
  }),
  /** The records that a fork keeps of another run: replay returns their results and executes nothing again. */
  "fork.kept": z.strictObject({ records: z.array(z.strictObject({ kind: name, data: value })) }),
  "operator.action": z.strictObject({
    by: name,
    action: name,
    reason: name,
    detail: value.optional(),
    via: credential.exactOptional(),
  }),
} as const;

/** The kind of a journal record. */
export type RecordKind = keyof typeof schemas;
/** The data of a record, by its kind. */
export type RecordData<K extends RecordKind> = z.infer<(typeof schemas)[K]>;
/** A record that is about to be written. */
export type NewRecord = { [K in RecordKind]: { readonly kind: K; readonly data: RecordData<K> } }[RecordKind];
/** A record as a reader gets it. */
export type JournalRecord = NewRecord & {
  readonly journal: number;
  readonly seq: number;
  readonly token: bigint;
  /** Store time, milliseconds since 1970. */
  readonly at: number;
};

export const recordKinds = Object.keys(schemas) as readonly RecordKind[];

/** The schema of each kind's data, for code that iterates over all kinds. */
export const recordSchemas: { readonly [K in RecordKind]: z.ZodType } = schemas;

export function isRecordKind(kind: string): kind is RecordKind {
  return Object.hasOwn(schemas, kind);
}

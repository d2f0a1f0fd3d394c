import { CodecError, decode, holdsBlobs, isErased, markBlobHolder } from "../base/codec.ts";
import { defined } from "../base/defined.ts";
import type { DeadLetter, LetterState } from "../model/dead-letter.ts";
import { TapeError } from "../model/errors.ts";
import type { LeaseView } from "../model/lease.ts";
import type { EffectStatus, ObligationStatus, RunPhase, RunStatus } from "../model/machines.ts";
import { effectiveLimit, type Quota, type QuotaLimits, quotaKinds } from "../model/quota.ts";
import { isRecordKind, type JournalRecord, type RecordData, recordVersion } from "../model/records.ts";
import type {
  BudgetRow,
  BusinessKeyRow,
  EffectRow,
  GateRow,
  JournalKind,
  ScheduleRow,
  TimerRow,
} from "../model/rows.ts";
import { runErrorOf } from "../model/run-error.ts";
import type {
  ApiToken,
  AuditEntry,
  FeedRecord,
  ProcessView,
  PublishedValue,
  Reply,
  RunProgress,
  RunView,
  StoredValue,
  Subject,
} from "./contract/store.ts";
import type { RowOf } from "./sql/statements.gen.ts";

/** Decodes SQL rows (snake_case, tokens as decimal text) into the types of the contract. */

const text = (value: unknown): string => value as string;
const orNull = (value: unknown): string | null => (value === undefined ? null : (value as string | null));
const numberOrNull = (value: unknown): number | null => (value === null || value === undefined ? null : Number(value));
const tokenOrNull = (value: unknown): bigint | null => (value === null ? null : BigInt(value as string));
const decoded = (value: unknown): unknown => (value === null || value === undefined ? undefined : decode(text(value)));

/** Columns of a record, in a journal or in the feed. */
type RecordColumns = Pick<RowOf<"feed.page">, keyof RowOf<"journal.page">>;

export function recordOf(row: RecordColumns): JournalRecord {
  return decodeRecord({
    journal: Number(row.journal),
    seq: Number(row.seq),
    token: BigInt(row.token as string),
    at: Number(row.at),
    kind: text(row.kind),
    body: text(row.body),
  });
}

export interface StoredRecord {
  readonly journal: number;
  readonly seq: number;
  readonly token: bigint;
  readonly at: number;
  readonly kind: string;
  readonly body: string;
}

/** An unknown kind or version is an error and never skipped: otherwise replay would silently differ. */
export function decodeRecord(stored: StoredRecord): JournalRecord {
  const { journal, seq, token, at, kind } = stored;
  const newer = (version: unknown, cause?: unknown) => {
    const message = `record ${seq} of journal ${journal} is a ${kind} of ${version}, unknown to this version of Tape`;
    return new TapeError("TAPE_RECORD_NEWER", message, { journal, seq, kind, version }, cause);
  };
  let body: { v?: number };
  try {
    body = decode(stored.body) as { v?: number };
  } catch (error) {
    if (error instanceof CodecError && error.code === "newer_codec") throw newer("a newer codec", error);
    throw error;
  }
  const { v, ...data } = body;
  if (holdsBlobs(body)) markBlobHolder(data);
  if (!isRecordKind(kind) || v !== recordVersion) throw newer(`version ${v}`);
  return { journal, seq, token, at, kind, data } as JournalRecord;
}

/** An inbox is stored under the negative number of its journal. */
export function feedRecordOf(row: RecordColumns, cursor: string): FeedRecord {
  const record = recordOf(row);
  return { ...record, journal: Math.abs(record.journal), in: record.journal < 0 ? "inbox" : "journal", cursor };
}

export function statusOf(phase: RunPhase, held: boolean, wanted: boolean, slot: unknown = null): RunStatus {
  if (phase !== "LIVE") return phase;
  if (held) return "RUNNING";
  if (wanted) return "RUNNABLE";
  return slot === "QUEUED" ? "QUEUED" : "WAITING";
}

export function runViewOf(row: RowOf<"run.get">, lease: LeaseView): RunView {
  const phase = row.phase as RunPhase;
  const outcome = decoded(row.outcome);
  const error = runErrorOf(orNull(row.cause), outcome);
  return {
    journal: Number(row.journal),
    tenant: text(row.tenant),
    id: text(row.id),
    workflow: text(row.workflow),
    version: orNull(row.version),
    status: statusOf(phase, lease.owner !== null, lease.nextReactor !== null, lease.slot),
    cause: orNull(row.cause),
    stuckFrom: orNull(row.stuck_from),
    inputHash: text(row.input_hash),
    labels: row.labels === null ? {} : (JSON.parse(text(row.labels)) as Record<string, string>),
    outcome,
    ...(error && { error }),
    ...(isErased(outcome) && { erased: true as const }),
    parent: numberOrNull(row.parent),
    root: Number(row.root),
    createdAt: Number(row.created_at),
    endedAt: numberOrNull(row.ended_at),
    notes: Number(row.notes),
    lease,
  };
}

export function runProgressOf(row: RowOf<"run.progress">): RunProgress {
  const [held, wanted] = [row.lease_owner !== null, row.lease_next_reactor !== null];
  const outcome = decoded(row.outcome);
  const error = runErrorOf(text(row.phase), outcome);
  return {
    id: text(row.id),
    journal: Number(row.journal),
    workflow: text(row.workflow),
    status: statusOf(row.phase as RunPhase, held, wanted, row.slot),
    outcome,
    ...(error && { error }),
    ended: row.ended_at !== null,
    idle: !held && !wanted && row.slot !== "QUEUED",
  };
}

export function effectRowOf(row: RowOf<"effect.find">): EffectRow {
  return {
    run: Number(row.run),
    pos: Number(row.pos),
    sub: Number(row.sub),
    tenant: text(row.tenant),
    root: Number(row.root),
    role: row.role as EffectRow["role"],
    name: orNull(row.name),
    connector: orNull(row.connector),
    semantics: row.semantics as EffectRow["semantics"],
    dispatch: row.dispatch as EffectRow["dispatch"],
    status: row.status as EffectStatus | ObligationStatus,
    authority: Number(row.authority),
    item: numberOrNull(row.item),
    key: text(row.key),
    businessKey: orNull(row.business_key),
    argsHash: orNull(row.args_hash),
    args: text(row.args),
    policy: orNull(row.policy),
    attempt: Number(row.attempt),
    attemptToken: tokenOrNull(row.attempt_token),
    sendUntil: numberOrNull(row.send_until),
    reason: orNull(row.reason),
    outcome: orNull(row.outcome),
    surplus: Boolean(row.surplus),
    uncertain: Boolean(row.uncertain),
    createdAt: Number(row.created_at),
    changedAt: Number(row.changed_at),
  };
}

export function gateRowOf(row: RowOf<"gate.run">): GateRow {
  return {
    run: Number(row.run),
    pos: Number(row.pos),
    tenant: text(row.tenant),
    name: text(row.name),
    status: row.status as GateRow["status"],
    binds: orNull(row.binds),
    payload: orNull(row.payload),
    approvers: orNull(row.approvers),
    ...(row.callback !== null && { callback: row.callback as "json" | "raw" }),
    value: orNull(row.value),
    openedAt: Number(row.opened_at),
  };
}

export const publishedOf = (row: RowOf<"published.list">): PublishedValue => ({
  name: text(row.name),
  value: decode(text(row.value)),
  seq: Number(row.seq),
  at: Number(row.at),
});

export const replyOf = (row: RowOf<"reply.find">): Reply => ({
  ...(decode(text(row.body)) as object),
  n: Number(row.n),
  at: Number(row.at),
});

export function timerRowOf(row: RowOf<"timer.list">): TimerRow {
  return {
    run: Number(row.run),
    pos: Number(row.pos),
    purpose: text(row.purpose),
    tenant: text(row.tenant),
    status: row.status as TimerRow["status"],
    dueAt: Number(row.due_at),
  };
}

export function budgetRowOf(row: RowOf<"budget.list">): BudgetRow {
  return {
    run: Number(row.run),
    unit: text(row.unit),
    cap: Number(row.cap) < 0 ? null : Number(row.cap),
    reserved: Number(row.reserved),
    spent: Number(row.spent),
  };
}

export function claimRowOf(row: RowOf<"business_key.find">): BusinessKeyRow & { runId: string } {
  return {
    tenant: text(row.tenant),
    scope: text(row.scope),
    businessKey: text(row.business_key),
    run: Number(row.run),
    pos: Number(row.pos),
    runId: text(row.run_id),
  };
}

export function quotaOf(row: RowOf<"quota.get">): Quota {
  const own = Object.fromEntries(quotaKinds.map((kind) => [kind, numberOrNull(row[kind])])) as QuotaLimits;
  const holds = quotaKinds.map((kind) => [kind, effectiveLimit(own[kind], numberOrNull(row[`default_${kind}`]))]);
  return {
    tenant: text(row.tenant),
    set: own,
    limits: Object.fromEntries(holds) as QuotaLimits,
    used: {
      runs: Number(row.open_runs),
      bytes: row.metered === null ? null : Number(row.bytes_used ?? 0),
      schedules: Number(row.all_schedules),
    },
  };
}

export function scheduleRowOf(row: RowOf<"schedule.list">): ScheduleRow {
  return {
    tenant: text(row.tenant),
    id: text(row.id),
    version: Number(row.version),
    spec: text(row.spec),
    nextAt: numberOrNull(row.next_at),
    paused: Boolean(row.paused),
  };
}

export function apiTokenOf(row: RowOf<"token.get">): ApiToken {
  return {
    id: text(row.id),
    tenant: text(row.tenant),
    name: text(row.name),
    role: text(row.role),
    hash: text(row.hash),
    createdAt: Number(row.created_at),
    expiresAt: numberOrNull(row.expires_at),
    revokedAt: numberOrNull(row.revoked_at),
    usedAt: numberOrNull(row.used_at),
  };
}

export function processOf(row: RowOf<"process.list">): ProcessView {
  return {
    owner: text(row.owner),
    label: text(row.label),
    at: Number(row.at),
    agoMs: Math.max(0, Number(row.ago_ms)),
    body: decode(text(row.body)),
  };
}

export function auditEntryOf(row: RowOf<"audit.all">): AuditEntry {
  const { by, action, reason, detail, via } = decode(text(row.body)) as RecordData<"operator.action">;
  return {
    cursor: String(row.id),
    n: Number(row.n),
    hash: text(row.hash),
    journal: Number(row.journal),
    subject: orNull(row.subject),
    tenant: text(row.tenant),
    at: Number(row.at),
    ...{ by, action, reason },
    ...defined({ detail, via }),
  };
}

export function deadLetterOf(row: RowOf<"dead_letter.list">): DeadLetter {
  return {
    sink: text(row.sink),
    event: text(row.event),
    journal: Number(row.journal),
    seq: Number(row.seq),
    inbox: Boolean(row.inbox),
    kind: text(row.kind),
    at: Number(row.at),
    attempts: Number(row.attempts),
    code: text(row.code),
    error: text(row.error),
    state: row.state as LetterState,
  };
}

export function subjectOf(row: RowOf<"subjects">): Subject {
  const run = row.run !== null && {
    id: text(row.run),
    workflow: text(row.workflow),
    version: orNull(row.version),
    labels: row.labels === null ? {} : (JSON.parse(text(row.labels)) as Record<string, string>),
    root: text(row.root),
    parent: orNull(row.parent),
  };
  return {
    journal: Number(row.journal),
    kind: row.kind as JournalKind,
    ...(row.name !== null && { name: text(row.name) }),
    ...(run && { run }),
    ...(row.pos !== null && { item: { pos: Number(row.pos), sub: Number(row.sub), name: orNull(row.effect) } }),
  };
}

export function valueRowOf(row: RowOf<"value.get">): StoredValue {
  const stored = row.value;
  return {
    key: text(row.key),
    version: Number(row.version),
    value: decoded(stored),
    deleted: stored === null,
    at: Number(row.at),
  };
}

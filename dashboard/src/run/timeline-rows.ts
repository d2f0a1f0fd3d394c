import type { Effect, JournalRecord, Timer } from "../api.ts";
import { brief, describeReason, formatTime, unwrap } from "../format.ts";
import { type Tone, toneOf } from "../ui/badge.tsx";

/** A bar of a row; without `to` it lasts until now. */
export interface Span {
  readonly from: number;
  readonly to: number | undefined;
  readonly tone: Tone;
  readonly label: string;
}

export interface Point {
  readonly at: number;
  readonly tone: Tone;
  readonly label: string;
  /** Due at that time. Once it happens, its record makes a point of its own. */
  readonly planned?: true;
}

/** One operation of the run, or an event without a position. */
export interface Row {
  readonly key: string;
  readonly kind: string;
  readonly name: string;
  readonly status: string | undefined;
  readonly spans: readonly Span[];
  readonly points: readonly Point[];
  readonly records: readonly JournalRecord[];
  /** The record of its result: terms after it replay the result instead of executing the operation. */
  readonly result: JournalRecord | undefined;
}

interface Data {
  readonly pos?: number;
  readonly sub?: number;
  readonly name?: string;
  readonly workflow?: string;
  readonly key?: string;
  readonly id?: string;
  readonly to?: string;
  readonly status?: string;
  readonly reason?: string;
  readonly attempt?: number;
  readonly observation?: string;
  readonly error?: unknown;
  readonly value?: unknown;
  readonly auditReason?: string;
  readonly cause?: string;
  readonly action?: string;
  readonly by?: string;
  readonly delayMs?: number;
  readonly nextReactor?: string;
  readonly purpose?: string;
  readonly happened?: boolean;
  readonly transaction?: boolean;
  readonly outage?: { readonly since: number; readonly gaveUp?: true };
}
const dataOf = (record: JournalRecord): Data => (unwrap(record.data) ?? {}) as Data;

const isResult = (record: JournalRecord): boolean => {
  if (record.kind === "effect.settled") return ["CONFIRMED", "FAILED"].includes(dataOf(record).to ?? "");
  return !["effect.intended", "effect.dispatched", "gate.opened", "timer.set", "step.failed"].includes(record.kind);
};

/** What a row is called, by the kind of its first record. */
const kindNames: Readonly<Record<string, string>> = {
  "step.done": "step",
  "step.failed": "step",
  "decision.made": "decision",
  "sample.taken": "sample",
  "patch.marked": "patch",
  "state.published": "published",
  "labels.set": "labels",
  "reply.sent": "reply",
  "lane.opened": "lane",
  "race.won": "race",
  "scope.opened": "scope",
  "scope.closed": "end of scope",
  "saga.compensated": "compensated",
  "effect.intended": "effect",
  "effect.received": "effect",
  "gate.opened": "gate",
  "timer.set": "sleep",
  "child.started": "child",
  "child.received": "child result",
  "value.written": "value",
  "budget.reserved": "budget",
  "budget.presumed": "presumed cost",
  "budget.charged": "charge",
};

/** The ownership band shows these. */
const leaseKinds: ReadonlySet<string> = new Set(["term.started", "term.ended", "notes.taken"]);

export interface TimelineInput {
  readonly records: readonly JournalRecord[];
  readonly effects: readonly Effect[];
  readonly timers: readonly Timer[];
  /** Records of this run's items, by journal. */
  readonly items: ReadonlyMap<number, readonly JournalRecord[]>;
}

/** The rows of one window of the journal, in the order of their first records. */
export function timelineRows({ records, effects, timers, items }: TimelineInput): Row[] {
  const byPos = new Map<number, JournalRecord[]>();
  const order: (number | JournalRecord)[] = [];
  for (const record of records) {
    if (leaseKinds.has(record.kind)) continue;
    const { pos, purpose } = dataOf(record);
    // The deadline is of the run, not of the operation at position 0.
    if (pos === undefined || record.kind === "run.retried" || purpose === "deadline") {
      order.push(record);
      continue;
    }
    if (!byPos.has(pos)) order.push(pos);
    byPos.set(pos, [...(byPos.get(pos) ?? []), record]);
  }
  const previousAt = new Map(records.map((record, k) => [record.seq, records[k - 1]?.at ?? record.at]));
  return order.map((entry) => {
    if (typeof entry !== "number") return eventRow(entry);
    const own = byPos.get(entry)!;
    const effect = effects.find(({ pos, sub }) => pos === entry && sub === 0);
    const timer = timers.find(
      ({ pos, status, purpose }) => pos === entry && status === "SET" && purpose !== "deadline",
    );
    return operationRow(entry, own, previousAt.get(own[0]!.seq) ?? own[0]!.at, effect, timer, items);
  });
}

function eventRow(record: JournalRecord): Row {
  const { reason, auditReason, cause, status, action, by, workflow, error, delayMs } = dataOf(record);
  const name =
    (record.kind === "run.stuck" || record.kind === "signal.refused" ? reason : auditReason) ??
    cause ??
    status?.toLowerCase() ??
    (action === undefined ? undefined : `${action} by ${by}`) ??
    workflow ??
    brief(error, 60);
  const tone: Tone = /stuck|failed|suspected/.test(`${record.kind} ${status ?? ""}`.toLowerCase()) ? "bad" : "idle";
  return {
    key: `record ${record.seq}`,
    kind: record.kind.replace(".", " "),
    name,
    status: undefined,
    spans: [],
    points: [
      { at: record.at, tone, label: record.kind },
      ...(record.kind === "run.retried"
        ? [{ at: record.at + (delayMs ?? 0), tone: "idle" as const, label: "next attempt", planned: true as const }]
        : []),
    ],
    records: [record],
    result: undefined,
  };
}

function operationRow(
  pos: number,
  own: readonly JournalRecord[],
  previousAt: number,
  effect: Effect | undefined,
  timer: Timer | undefined,
  items: ReadonlyMap<number, readonly JournalRecord[]>,
): Row {
  const first = own[0]!;
  const data = dataOf(first);
  const isDecision = own.some((record) => record.kind === "decision.made");
  const named = isDecision ? "decision" : (kindNames[first.kind] ?? first.kind.replace(".", " "));
  const kind = data.transaction === true ? "transaction" : named;
  const shared = {
    key: `pos ${pos}`,
    kind,
    name: data.name ?? data.workflow ?? data.key ?? data.id ?? data.purpose ?? "",
    result: own.find(isResult),
  };
  if (kind === "effect") return { ...shared, ...effectParts(own, effect, items) };
  if (kind === "gate" || kind === "sleep" || kind === "child") return { ...shared, ...waitParts(own, timer) };
  if (kind === "step" || kind === "transaction" || kind === "decision")
    return { ...shared, ...attemptParts(own, kind, previousAt) };
  const failed = own.some((record) => dataOf(record).error !== undefined);
  const points: Point[] = own.map((record) => ({ at: record.at, tone: "idle", label: record.kind }));
  return { ...shared, status: failed ? "FAILED" : undefined, spans: [], points, records: own };
}

/** One span for each attempt of a step, which is recorded when it ends; it started no earlier than the one before. */
function attemptParts(own: readonly JournalRecord[], kind: string, previousAt: number) {
  let from = previousAt;
  const spans = own.map((record): Span => {
    const { attempt, error, delayMs = 0 } = dataOf(record);
    const label = record.kind === "step.failed" ? `attempt ${attempt} failed: ${brief(error, 60)}` : kind;
    const span: Span = { from, to: record.at, tone: error === undefined ? "run" : "bad", label };
    from = record.at + delayMs;
    return span;
  });
  const last = own.at(-1)!;
  const waits = last.kind === "step.failed";
  const { outage, error } = dataOf(last);
  const since = outage === undefined ? "" : `, unreachable since ${formatTime(outage.since)}`;
  const next: Point = { at: from, tone: "idle", label: `next attempt${since}`, planned: true };
  const waiting = outage === undefined ? "RETRIED" : outage.gaveUp ? "STUCK" : "UNREACHABLE";
  const status = waits ? waiting : error === undefined ? undefined : "FAILED";
  return { status, spans, points: waits && outage?.gaveUp !== true ? [next] : [], records: own };
}

function waitParts(own: readonly JournalRecord[], timer: Timer | undefined) {
  const first = own[0]!;
  const end = own.find(({ kind }) => /resolved|fired|passed|cancelled|settled/.test(kind));
  const status = end === undefined ? "WAITING" : (dataOf(end).to ?? dataOf(end).status ?? "FIRED");
  const spans: Span[] = [{ from: first.at, to: end?.at, tone: "wait", label: "waiting" }];
  const points: Point[] = [
    ...(end === undefined ? [] : [{ at: end.at, tone: toneOf(status), label: status.toLowerCase() }]),
    ...(timer === undefined
      ? []
      : [{ at: timer.dueAt, tone: "idle" as const, label: "timer due", planned: true as const }]),
  ];
  return { status, spans, points, records: own };
}

/** The last holder of the item recorded which reactor has it next, and when. */
function nextAttempt(last: JournalRecord | undefined): Point | undefined {
  if (last?.kind !== "term.ended") return undefined;
  const { nextReactor, delayMs = 0 } = dataOf(last);
  return nextReactor === undefined
    ? undefined
    : { at: last.at + delayMs, tone: "idle", label: `next attempt by ${nextReactor}`, planned: true };
}

function describe(record: JournalRecord): string {
  const { attempt, observation, happened, action, by, reason } = dataOf(record);
  if (record.kind === "effect.dispatched") return `attempt ${attempt} sent`;
  if (record.kind === "effect.observed") return `observed: ${observation}`;
  if (record.kind === "effect.evidence") return `evidence: it ${happened === true ? "happened" : "did not happen"}`;
  if (record.kind === "operator.action") return `${action} by ${by}`;
  return describeReason(reason);
}

function effectParts(
  own: readonly JournalRecord[],
  effect: Effect | undefined,
  items: ReadonlyMap<number, readonly JournalRecord[]>,
) {
  const ofItem = effect?.item === null || effect?.item === undefined ? [] : (items.get(effect.item) ?? []);
  const records = [...own, ...ofItem.filter(({ kind }) => kind.startsWith("effect.") || kind === "operator.action")];
  records.sort((a, b) => a.at - b.at);
  const last = records.findLast(({ kind }) => kind === "effect.settled" || kind === "effect.received");
  const status =
    effect?.status ?? (last === undefined ? "PENDING" : (dataOf(last).to ?? dataOf(last).status ?? "PENDING"));
  const points: Point[] = [];
  const spans: Span[] = [];
  let since = records[0]!.at;
  let state = "PENDING";
  for (const record of records) {
    const { to, status: received } = dataOf(record);
    const next = record.kind === "effect.dispatched" ? "DISPATCHED" : (to ?? received);
    if (record.kind !== "effect.intended") {
      points.push({ at: record.at, tone: toneOf(next ?? "PENDING"), label: describe(record) });
    }
    if (next === undefined || next === state) continue;
    spans.push({ from: since, to: record.at, tone: toneOf(state), label: state.toLowerCase() });
    [since, state] = [record.at, next];
  }
  const next = nextAttempt(ofItem.at(-1));
  if (next !== undefined) points.push(next);
  const isSettled = ["CONFIRMED", "FAILED", "WITHDRAWN"].includes(state);
  if (!isSettled) spans.push({ from: since, to: undefined, tone: toneOf(state), label: state.toLowerCase() });
  return { status, spans, points, records };
}

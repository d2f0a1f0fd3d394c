import type { Effect, Entry, Timer } from "../api.ts";
import { brief, describeReason, unwrap } from "../format.ts";
import { type Tone, toneOf } from "../ui/badge.tsx";

/** A stretch of a row on the axis; open: it lasts until now. */
export interface Span {
  readonly from: number;
  readonly to: number | undefined;
  readonly tone: Tone;
  readonly about: string;
}

export interface Point {
  readonly at: number;
  readonly tone: Tone;
  readonly about: string;
  /** Meant to happen then; what came of it has a point of its own. */
  readonly planned?: true;
}

/** One operation of the run, or something that befell it. */
export interface Row {
  readonly key: string;
  readonly what: string;
  readonly name: string;
  readonly status: string | undefined;
  readonly spans: readonly Span[];
  readonly points: readonly Point[];
  readonly records: readonly Entry[];
  /** The record that holds its result: from then on it is handed back, not done again. */
  readonly done: Entry | undefined;
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
  readonly why?: string;
  readonly cause?: string;
  readonly action?: string;
  readonly who?: string;
  readonly inMs?: number;
  readonly nextReactor?: string;
  readonly purpose?: string;
  readonly happened?: boolean;
}
const dataOf = (record: Entry): Data => (unwrap(record.data) ?? {}) as Data;

const isResult = (record: Entry): boolean => {
  if (record.kind === "effect.settled") return ["CONFIRMED", "FAILED"].includes(dataOf(record).to ?? "");
  return !["effect.intended", "effect.dispatched", "gate.opened", "timer.set"].includes(record.kind);
};

const words: Readonly<Record<string, string>> = {
  "step.done": "step",
  "decision.made": "decision",
  "sample.taken": "sample",
  "patch.marked": "patch",
  "lane.opened": "lane",
  "race.won": "race",
  "effect.intended": "effect",
  "effect.received": "effect",
  "gate.opened": "gate",
  "timer.set": "sleep",
  "child.started": "child",
  "child.received": "child's result",
  "value.written": "value",
  "budget.reserved": "budget",
  "budget.charged": "charge",
};

/** Ownership is in the band above the rows. */
const ofBand: ReadonlySet<string> = new Set(["term.started", "term.ended", "notes.taken"]);

export interface Folding {
  readonly records: readonly Entry[];
  readonly effects: readonly Effect[];
  readonly timers: readonly Timer[];
  /** Records of the item journals of this run's acts. */
  readonly items: ReadonlyMap<number, readonly Entry[]>;
}

/** The rows of one window of the journal, in the order in which they began. */
export function timelineRows({ records, effects, timers, items }: Folding): Row[] {
  const byPos = new Map<number, Entry[]>();
  const order: (number | Entry)[] = [];
  for (const record of records) {
    if (ofBand.has(record.kind)) continue;
    const { pos } = dataOf(record);
    if (pos === undefined || record.kind === "run.retried") {
      order.push(record);
      continue;
    }
    if (!byPos.has(pos)) order.push(pos);
    byPos.set(pos, [...(byPos.get(pos) ?? []), record]);
  }
  const before = new Map(records.map((record, k) => [record.seq, records[k - 1]?.at ?? record.at]));
  return order.map((one) => {
    if (typeof one !== "number") return eventRow(one);
    const own = byPos.get(one)!;
    const act = effects.find(({ pos, sub }) => pos === one && sub === 0);
    const timer = timers.find(({ pos, status }) => pos === one && status === "SET");
    return operationRow(one, own, before.get(own[0]!.seq) ?? own[0]!.at, act, timer, items);
  });
}

function eventRow(record: Entry): Row {
  const { why, cause, status, action, who, workflow, error, inMs } = dataOf(record);
  const said =
    why ??
    cause ??
    status?.toLowerCase() ??
    (action === undefined ? undefined : `${action} by ${who}`) ??
    workflow ??
    brief(error, 60);
  const tone: Tone = /stuck|failed|suspected/.test(`${record.kind} ${status ?? ""}`.toLowerCase()) ? "bad" : "idle";
  return {
    key: `record ${record.seq}`,
    what: record.kind.replace(".", " "),
    name: said,
    status: undefined,
    spans: [],
    points: [
      { at: record.at, tone, about: record.kind },
      ...(record.kind === "run.retried"
        ? [{ at: record.at + (inMs ?? 0), tone: "idle" as const, about: "next try", planned: true as const }]
        : []),
    ],
    records: [record],
    done: undefined,
  };
}

function operationRow(
  pos: number,
  own: readonly Entry[],
  previousAt: number,
  act: Effect | undefined,
  timer: Timer | undefined,
  items: ReadonlyMap<number, readonly Entry[]>,
): Row {
  const first = own[0]!;
  const what = words[first.kind] ?? first.kind.replace(".", " ");
  const data = dataOf(first);
  const shared = {
    key: `pos ${pos}`,
    what,
    name: data.name ?? data.workflow ?? data.key ?? data.id ?? data.purpose ?? "",
    done: own.find(isResult),
  };
  if (what === "effect") return { ...shared, ...effectParts(own, act, items) };
  if (what === "gate" || what === "sleep" || what === "child") {
    const end = own.find(({ kind }) => /resolved|fired|passed|cancelled|settled/.test(kind));
    const status = end === undefined ? "WAITING" : (dataOf(end).to ?? dataOf(end).status ?? "FIRED");
    const spans: Span[] = [{ from: first.at, to: end?.at, tone: "wait", about: "waits" }];
    const points: Point[] = [
      ...(end === undefined ? [] : [{ at: end.at, tone: toneOf(status), about: status.toLowerCase() }]),
      ...(timer === undefined
        ? []
        : [{ at: timer.dueAt, tone: "idle" as const, about: "its time is over", planned: true as const }]),
    ];
    return { ...shared, status, spans, points, records: own };
  }
  const failed = own.some((record) => dataOf(record).error !== undefined);
  // A step is recorded when it is done: it began when the record before it was written, or later.
  const spans: Span[] =
    what === "step" || what === "decision"
      ? [{ from: previousAt, to: first.at, tone: failed ? "bad" : "run", about: what }]
      : [];
  const points: Point[] = spans.length > 0 ? [] : own.map(({ at, kind }) => ({ at, tone: "idle", about: kind }));
  return { ...shared, status: failed ? "FAILED" : undefined, spans, points, records: own };
}

/** Whoever gave the act's journal back said who should have it next, and how soon. */
function nextTry(last: Entry | undefined): Point | undefined {
  if (last?.kind !== "term.ended") return undefined;
  const { nextReactor, inMs = 0 } = dataOf(last);
  return nextReactor === undefined
    ? undefined
    : { at: last.at + inMs, tone: "idle", about: `next try by the ${nextReactor}`, planned: true };
}

function effectParts(own: readonly Entry[], act: Effect | undefined, items: ReadonlyMap<number, readonly Entry[]>) {
  const more = act?.item === null || act?.item === undefined ? [] : (items.get(act.item) ?? []);
  const records = [...own, ...more.filter(({ kind }) => kind.startsWith("effect.") || kind === "operator.action")];
  records.sort((a, b) => a.at - b.at);
  const last = records.findLast(({ kind }) => kind === "effect.settled" || kind === "effect.received");
  const status =
    act?.status ?? (last === undefined ? "PENDING" : (dataOf(last).to ?? dataOf(last).status ?? "PENDING"));
  const points: Point[] = [];
  const spans: Span[] = [];
  let since = records[0]!.at;
  let state = "PENDING";
  for (const record of records) {
    const { attempt, observation, to, status: heard, reason, action, who, happened } = dataOf(record);
    const about =
      record.kind === "effect.dispatched"
        ? `attempt ${attempt} sent`
        : record.kind === "effect.observed"
          ? `looked: ${observation}`
          : record.kind === "effect.evidence"
            ? `evidence: it ${happened === true ? "happened" : "did not happen"}`
            : record.kind === "operator.action"
              ? `${action} by ${who}`
              : describeReason(reason);
    const next = record.kind === "effect.dispatched" ? "DISPATCHED" : (to ?? heard);
    if (record.kind !== "effect.intended") points.push({ at: record.at, tone: toneOf(next ?? "PENDING"), about });
    if (next === undefined || next === state) continue;
    spans.push({ from: since, to: record.at, tone: toneOf(state), about: state.toLowerCase() });
    [since, state] = [record.at, next];
  }
  const next = nextTry(more.at(-1));
  if (next !== undefined) points.push(next);
  const over = ["CONFIRMED", "FAILED", "WITHDRAWN"].includes(state);
  if (!over) spans.push({ from: since, to: undefined, tone: toneOf(state), about: state.toLowerCase() });
  return { status, spans, points, records };
}

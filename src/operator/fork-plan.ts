import { cutOf } from "../engine/context/lanes.ts";
import { positionOf } from "../engine/replay/progress.ts";
import { TapeError } from "../model/errors.ts";
import { laneOf, laneRoom } from "../model/record-context.ts";
import type { JournalRecord, RecordData } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";

/** One operation of the source run. */
export interface ForkedOperation {
  readonly pos: number;
  /** step, transaction, decision, effect, gate, timer, child, … */
  readonly what: string;
  readonly name: string;
}

/** An effect that has happened, or a transaction that was committed, and would be repeated. An effect gets a new key. */
export interface RepeatedEffect extends ForkedOperation {
  /** true: repeating it does no harm (idempotent, read). Otherwise it must be named in `repeat`. */
  readonly repeatable: boolean;
  readonly args: unknown;
  readonly businessKey?: string | undefined;
}

/** A kept effect whose compensation is done, in progress, or may become due. */
export interface CompensatedEffect extends ForkedOperation {
  /** The status of its obligation. ARMED: the source run compensates it if it fails or is cancelled. */
  readonly obligation: string;
}

/** What a fork keeps and what it runs again. */
export interface ForkPlan {
  /** Operations before this position are kept. */
  readonly at: number;
  /** The first position that is not kept of each other lane, if the run has lanes. */
  readonly lanes?: readonly number[];
  readonly kept: readonly ForkedOperation[];
  readonly rerun: readonly ForkedOperation[];
  readonly alreadyHappened: readonly RepeatedEffect[];
  /** Kept effects that the source run has compensated or may compensate; each must be named in `keepCompensated`. */
  readonly compensated: readonly CompensatedEffect[];
  /**
   * All kept effects with an obligation, those of `compensated` included. The obligation stays with the source run: a
   * fork that fails does not compensate them.
   */
  readonly notCompensated: readonly ForkedOperation[];
}

/** The source run: its records, and the state of its effects by position. */
export interface ForkInput {
  readonly records: readonly JournalRecord[];
  readonly effects: ReadonlyMap<number, Pick<EffectRow, "status" | "uncertain">>;
  /** Statuses of the obligations of its effects, of its children's and of those it kept, by its own positions. */
  readonly obligations: ReadonlyMap<number, string>;
  /** The current generation of a run that has continued as new, and its first position: only that can be forked. */
  readonly generation?: { readonly generation: number; readonly pos: number };
}

interface Operation extends ForkedOperation {
  /** The record with its result. */
  readonly settledAt: number;
  /** It has a result that is not the failure that ended the run. */
  readonly done: boolean;
  readonly records: readonly JournalRecord[];
}

export function forkPlan(from: ForkInput, at: number | undefined): ForkPlan {
  const operations = operationsOf(from.records);
  const ofLane = (lane: number): Operation[] => operations.filter(({ pos }) => laneOf(pos) === lane);
  const begins = from.generation?.pos ?? 0;
  const lane = laneOf(at ?? begins);
  const first = Math.max(lane * laneRoom, begins);
  const last = ofLane(lane).at(-1)?.pos ?? first - 1;
  const open = ofLane(lane).find(({ done }) => !done);
  const point = at ?? open?.pos ?? last + 1;
  if (!Number.isSafeInteger(point) || point < first || point > last + 1) {
    const earlier = point < begins ? "; the operations before belong to an earlier generation" : "";
    const message = `the position of a fork of this run is from ${first} to ${last + 1}${earlier}`;
    throw new TapeError("TAPE_BAD_FORK_POINT", message, { at: point });
  }
  const lanes = cutsBeside(operations, point);
  const kept = ({ pos }: ForkedOperation): boolean => pos < cutOf(point, lanes, laneOf(pos));
  const unfinished = operations.find(
    (operation) =>
      kept(operation) && (isOpen(operation) || operations.some((later) => !kept(later) && isCut(operation, later))),
  );
  if (unfinished !== undefined) {
    const { pos, what, name } = unfinished;
    throw new TapeError("TAPE_BAD_FORK_POINT", `${what} ${name} at ${pos} is not settled: fork at ${pos} or before`, {
      at: point,
      pos,
    });
  }
  const short = ({ pos, what, name }: Operation): ForkedOperation => ({ pos, what, name });
  const later = operations.filter((operation) => !kept(operation));
  const before = operations.filter(kept);
  const owed = before.flatMap((operation) => {
    const obligation = from.obligations.get(operation.pos);
    return obligation === undefined ? [] : [{ ...short(operation), obligation }];
  });
  // Repeating a compensated effect does not make it happen twice.
  const stands = later.filter(({ pos }) => from.obligations.get(pos) !== "COMPENSATED");
  return {
    at: point,
    ...(lanes.length > 0 && { lanes }),
    kept: before.map(short),
    rerun: later.map(short),
    alreadyHappened: stands.flatMap((operation) => repeatedEffect(operation, from.effects.get(operation.pos))),
    compensated: owed.filter(({ obligation }) => obligation !== "DISCHARGED"),
    notCompensated: owed.map(({ pos, what, name }) => ({ pos, what, name })),
  };
}

/**
 * The cuts of the other lanes. Each lane keeps its longest prefix of operations whose results were recorded before the
 * first result, in any lane, that is not kept: later operations may depend on what runs again.
 */
function cutsBeside(operations: readonly Operation[], point: number): number[] {
  const numbers = new Set(operations.map(({ pos }) => laneOf(pos)));
  if (numbers.size <= 1) return [];
  const cuts = new Map([...numbers].map((lane) => [lane, lane === laneOf(point) ? point : (lane + 1) * laneRoom - 1]));
  for (let changed = true; changed; ) {
    const rerun = operations.filter(({ pos }) => pos >= cuts.get(laneOf(pos))!);
    const before = rerun.reduce((min, { settledAt }) => Math.min(min, settledAt), Number.POSITIVE_INFINITY);
    changed = false;
    for (const { pos, settledAt, done } of operations) {
      const lane = laneOf(pos);
      if (lane === laneOf(point) || pos >= cuts.get(lane)! || (done && settledAt < before)) continue;
      cuts.set(lane, pos);
      changed = true;
    }
  }
  cuts.delete(laneOf(point));
  return [...cuts.values()];
}

const operationNames: Readonly<Record<string, string>> = {
  "step.done": "step",
  "decision.made": "decision",
  "sample.taken": "sample",
  "patch.marked": "patch",
  "race.won": "race",
  "scope.opened": "scope",
  "scope.closed": "end of scope",
  "saga.compensated": "compensation of saga",
  "effect.intended": "effect",
  "effect.received": "effect",
  "gate.opened": "gate",
  "state.published": "published value",
  "labels.set": "labels",
  "reply.sent": "reply",
  "timer.set": "timer",
  "child.started": "child",
  "child.received": "result of child",
  "value.written": "value",
  "budget.reserved": "budget",
  "budget.presumed": "presumed cost",
  "budget.charged": "budget charge",
};

function operationsOf(records: readonly JournalRecord[]): Operation[] {
  const byPos = new Map<number, JournalRecord[]>();
  let failedAt: number | undefined;
  for (const record of records) {
    if (record.kind === "run.retried") failedAt = undefined;
    const pos = positionOf(record);
    if (pos === undefined) continue;
    byPos.set(pos, [...(byPos.get(pos) ?? []), record]);
    if (isFailure(record)) failedAt = pos;
  }
  const ended = records.some(({ kind }) => kind === "run.decided" || kind === "run.ended");
  const received = new Set(
    records.flatMap((record) => (record.kind === "child.received" ? [record.data.childPos] : [])),
  );
  return [...byPos]
    .sort(([a], [b]) => a - b)
    .map(([pos, own]) => {
      const [first] = own;
      const data = first!.data as { name?: string; workflow?: string; key?: string; id?: string };
      const what = own.some(isCommitted) ? "transaction" : (operationNames[first!.kind] ?? first!.kind);
      const name = data.name ?? data.workflow ?? data.key ?? data.id ?? "";
      const settled = own.some((record) => settles(record)) && (what !== "child" || received.has(pos));
      // A fork is usually made to retry the failure that ended the run, so by default it runs again.
      const done = settled && !(ended && pos === failedAt);
      const settledAt = own.find((record) => settles(record))?.seq ?? Number.POSITIVE_INFINITY;
      return { pos, what, name, done, settledAt, records: own };
    });
}

/** Rows of the author were committed with it; those of a failed step were not. */
const isCommitted = (record: JournalRecord): boolean => record.kind === "step.done" && record.data.transaction === true;

function settles(record: JournalRecord): boolean {
  switch (record.kind) {
    case "effect.intended":
    case "effect.dispatched":
    case "effect.observed":
    case "gate.opened":
    case "timer.set":
      return false;
    case "effect.settled":
      return (record.data.sub ?? 0) === 0 && (record.data.to === "CONFIRMED" || record.data.to === "FAILED");
    default:
      return true;
  }
}

function isFailure(record: JournalRecord): boolean {
  if (record.kind === "step.done" || record.kind === "decision.made") return record.data.error !== undefined;
  if (record.kind === "effect.settled") return record.data.to === "FAILED";
  return record.kind === "effect.received" && record.data.status !== "CONFIRMED";
}

/**
 * A callback has two results. The code asked for the second after it had the results of other operations: if one of
 * these runs again, the replay would deliver the second result too early.
 */
function isCut({ records }: Operation, later: Operation): boolean {
  const opened = records.find((record) => record.kind === "gate.opened" && record.data.callback !== undefined);
  const resolved = records.find(({ kind }) => kind === "gate.resolved");
  return opened !== undefined && resolved !== undefined && later.settledAt < resolved.seq;
}

/** If it were kept, it would wait for a note that goes to the source run. */
function isOpen({ records, what, done }: Operation): boolean {
  if (done) return false;
  if (what === "effect" || what === "gate" || what === "timer") return !records.some(settles);
  return what === "child";
}

/** A dispatched effect may have happened even if it is PENDING again. Only FAILED and WITHDRAWN exclude it. */
function mayHaveHappened({ status, uncertain }: Pick<EffectRow, "status" | "uncertain">): boolean {
  return status === "PENDING" ? uncertain : status !== "FAILED" && status !== "WITHDRAWN";
}

function repeatedEffect(
  operation: Operation,
  row: Pick<EffectRow, "status" | "uncertain"> | undefined,
): RepeatedEffect[] {
  const { pos, what, name, records } = operation;
  if (what === "transaction") return [{ pos, what, name, repeatable: false, args: null }];
  const intended = records.find((record) => record.kind === "effect.intended");
  if (intended === undefined) return [];
  // An effect that this run kept from another has no row; its records show how it ended.
  const happened = row === undefined ? !records.some(isFailure) : mayHaveHappened(row);
  if (!happened) return [];
  const { semantics, args, businessKey } = intended.data as RecordData<"effect.intended">;
  return [{ pos, what, name, repeatable: semantics !== "non_idempotent", args, businessKey }];
}

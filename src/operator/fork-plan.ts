import { cutOf } from "../engine/context/lanes.ts";
import { positionOf } from "../engine/replay/history.ts";
import { TapeError } from "../model/errors.ts";
import { laneOf, laneRoom } from "../model/record-context.ts";
import type { JournalRecord, RecordData } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";

/** One operation of the run that is forked. */
export interface ForkedOperation {
  readonly pos: number;
  /** step, decision, effect, gate, timer, child, … */
  readonly what: string;
  readonly name: string;
}

/** An act that has happened in the world and would be done again, under a new key. */
export interface RepeatedEffect extends ForkedOperation {
  /** true: doing it again does no harm (idempotent, read). Else it must be named. */
  readonly repeatable: boolean;
  readonly args: unknown;
  readonly businessKey?: string | undefined;
}

/** A kept effect that does not stand any more, or may not: what undoes it was done, is under way, or may become due. */
export interface CompensatedEffect extends ForkedOperation {
  /** How the obligation to undo it stands. ARMED: the source run lives, and undoes it if it fails or is cancelled. */
  readonly obligation: string;
}

/** What a fork keeps, runs again and leaves out. */
export interface ForkPlan {
  /** Operations before this position are kept. */
  readonly at: number;
  /** Where the run has lanes: the first position of each other lane that is not kept. */
  readonly lanes?: readonly number[];
  readonly kept: readonly ForkedOperation[];
  readonly rerun: readonly ForkedOperation[];
  readonly alreadyHappened: readonly RepeatedEffect[];
  /** Kept, and undone or still to be undone by the source run: each must be named in `keepCompensated`. */
  readonly compensated: readonly CompensatedEffect[];
  /** Kept effects that could be undone: that stays the source run's business. A fork that fails does not undo them. */
  readonly notCompensated: readonly ForkedOperation[];
}

/** The run that is forked: its records, and how its acts stand, by position. */
export interface ForkInput {
  readonly records: readonly JournalRecord[];
  readonly effects: ReadonlyMap<number, Pick<EffectRow, "status" | "uncertain">>;
  /** How the obligations of its effects, of its children's, and of what it kept itself stand, by its own positions. */
  readonly obligations: ReadonlyMap<number, string>;
}

interface Operation extends ForkedOperation {
  /** The record that gave it its result. */
  readonly settledAt: number;
  /** It has a result, and not a failure that ended the run. */
  readonly done: boolean;
  readonly records: readonly JournalRecord[];
}

export function forkPlan(from: ForkInput, at: number | undefined): ForkPlan {
  const operations = operationsOf(from.records);
  const ofLane = (lane: number): Operation[] => operations.filter(({ pos }) => laneOf(pos) === lane);
  const lane = at === undefined ? 0 : laneOf(at);
  const first = lane * laneRoom;
  const last = ofLane(lane).at(-1)?.pos ?? first - 1;
  const open = ofLane(lane).find(({ done }) => !done);
  const point = at ?? open?.pos ?? last + 1;
  if (!Number.isSafeInteger(point) || point < first || point > last + 1) {
    const message = `a fork of this run is at a position from ${first} to ${last + 1}`;
    throw new TapeError("TAPE_BAD_FORK_POINT", message, { at: point });
  }
  const lanes = cutsBeside(operations, point);
  const kept = ({ pos }: ForkedOperation): boolean => pos < cutOf(point, lanes, laneOf(pos));
  const unfinished = operations.find((operation) => kept(operation) && isOpen(operation));
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
  // What was undone does not happen a second time by being done again.
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
 * What is kept of the other lanes: of each the longest beginning that had its results before anything that is not kept
 * had its own. What came later may follow from what is done again.
 */
function cutsBeside(operations: readonly Operation[], point: number): number[] {
  const numbers = new Set(operations.map(({ pos }) => laneOf(pos)));
  if (numbers.size <= 1) return [];
  const cuts = new Map([...numbers].map((lane) => [lane, lane === laneOf(point) ? point : (lane + 1) * laneRoom - 1]));
  for (let changed = true; changed; ) {
    const again = operations.filter(({ pos }) => pos >= cuts.get(laneOf(pos))!);
    const before = again.reduce((least, { settledAt }) => Math.min(least, settledAt), Number.POSITIVE_INFINITY);
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
  "effect.intended": "effect",
  "effect.received": "effect",
  "gate.opened": "gate",
  "timer.set": "timer",
  "child.started": "child",
  "child.received": "result of child",
  "value.written": "value",
  "budget.reserved": "budget",
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
      const what = operationNames[first!.kind] ?? first!.kind;
      const name = data.name ?? data.workflow ?? data.key ?? data.id ?? "";
      const settled = own.some((record) => settles(record)) && (what !== "child" || received.has(pos));
      // The failure that a run ended with is what a fork is for: by default it is done again.
      const done = settled && !(ended && pos === failedAt);
      const settledAt = own.find((record) => settles(record))?.seq ?? Number.POSITIVE_INFINITY;
      return { pos, what, name, done, settledAt, records: own };
    });
}

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

/** Kept as it is, it would wait for a note that goes to the other run. */
function isOpen({ records, what, done }: Operation): boolean {
  if (done) return false;
  if (what === "effect" || what === "gate" || what === "timer") return !records.some(settles);
  return what === "child";
}

/** A dispatched effect may have happened, also where it is PENDING again. Only FAILED and WITHDRAWN exclude it. */
function mayHaveHappened({ status, uncertain }: Pick<EffectRow, "status" | "uncertain">): boolean {
  return status === "PENDING" ? uncertain : status !== "FAILED" && status !== "WITHDRAWN";
}

function repeatedEffect(
  operation: Operation,
  row: Pick<EffectRow, "status" | "uncertain"> | undefined,
): RepeatedEffect[] {
  const { pos, what, name, records } = operation;
  const intended = records.find((record) => record.kind === "effect.intended");
  if (intended === undefined) return [];
  // What this run itself kept from another has no row: there its records say how it ended.
  const happened = row === undefined ? !records.some(isFailure) : mayHaveHappened(row);
  if (!happened) return [];
  const { semantics, args, businessKey } = intended.data as RecordData<"effect.intended">;
  return [{ pos, what, name, repeatable: semantics !== "non_idempotent", args, businessKey }];
}

import { fingerprint } from "../../base/canonical.ts";
import { isFailedAttempt, leavesDoubt } from "../../model/attempt.ts";
import { laneOf, laneRoom } from "../../model/record-context.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { RunSpec } from "../../store/contract/store.ts";
import { asStored } from "./stored-value.ts";

/** The sample that `now` takes; no author's sample may be called so. */
export const nowName = "now()";

/** A note as the inbox holds it. */
export type Note = JournalRecord;

/** A record that gives an operation its result, or tells the run that it is cancelled, at its place in the journal. */
export interface Delivery {
  readonly seq: number;
  readonly at: number;
  /** undefined: the cancellation. */
  readonly pos: number | undefined;
  readonly record: JournalRecord;
}

export interface EffectState {
  readonly intended: RecordData<"effect.intended">;
  status: string;
  attempt: number;
  /** Attempts that were cut short by a crash or a drain are not charged as failed ones. */
  failures: number;
  /** An attempt may have happened, and the effect is sent again. */
  uncertain: boolean;
  token: bigint;
}

/** What the journal says about a run, folded once when a drive begins. */
export interface History {
  readonly created: RecordData<"run.created">;
  readonly head: number;
  /** In journal order: what replay hands out. */
  readonly deliveries: readonly Delivery[];
  /** Every record of an operation, by its position: what replay compares the code with. */
  readonly byPos: ReadonlyMap<number, readonly JournalRecord[]>;
  readonly effects: ReadonlyMap<number, EffectState>;
  readonly taken: number;
  /** Whether a record of the journal has made use of this note. */
  readonly used: (note: Note) => boolean;
  readonly cancelled: boolean;
  readonly decided: RecordData<"run.decided"> | undefined;
  /** A person is awaited: nobody drives it until then. With the notes that had been taken when it got stuck. */
  readonly stuck: { readonly record: RecordData<"run.stuck">; readonly taken: number } | undefined;
  readonly retries: number;
  /** Where positions are left out: what had been asked for there was forgotten with a failure that is tried again. */
  readonly jumps: ReadonlyMap<number, number>;
  /** The number of each lane, by its path. */
  readonly lanes: ReadonlyMap<string, number>;
  /** By lane, the highest position that a record names. */
  readonly lastPos: ReadonlyMap<number, number>;
  /** Crashes while driven alone, since the run last made progress; undefined: it was not driven alone since. */
  readonly crashes: number | undefined;
  /** Terms that began because the one before had vanished, since the run last made progress. */
  readonly recoveries: number;
  /** Replays that waited in vain, since the run last made progress. */
  readonly stalls: number;
  /** The record by which it last made progress. */
  readonly progressAt: number;
  /** Ids of the children it has started. */
  readonly children: readonly string[];
}

const results: ReadonlySet<string> = new Set([
  "step.done",
  "decision.made",
  "sample.taken",
  "race.won",
  "child.started",
  "child.received",
  "effect.received",
  "gate.resolved",
  "sleep.ended",
  "value.written",
  "budget.reserved",
  "budget.charged",
]);

/** The history of a run that was created a moment ago. Its input goes through the codec, as replay will see it. */
export function freshHistory(spec: Pick<RunSpec, "id" | "workflow" | "input" | "checked">): History {
  const { id, workflow, input, checked } = spec;
  const data = {
    id,
    workflow,
    input: asStored(input),
    ...(checked && { checked }),
    get inputHash() {
      return fingerprint(input); // the store has it; few ask here
    },
  };
  const created: JournalRecord = { kind: "run.created", data, journal: 0, seq: 1, token: 0n, at: 0 };
  return foldHistory([created], []);
}

export function foldHistory(records: readonly JournalRecord[], notes: readonly Note[]): History {
  const [first] = records;
  if (first?.kind !== "run.created") throw new Error("a journal begins with run.created");
  const byPos = new Map<number, JournalRecord[]>();
  const effects = new Map<number, EffectState>();
  const consumed = new Set<number>();
  let deliveries: Delivery[] = [];
  let taken = 0;
  let cancelled = false;
  let decided: RecordData<"run.decided"> | undefined;
  let stuck: History["stuck"];
  let retries = 0;
  const jumps = new Map<number, number>();
  const lanes = new Map<string, number>();
  let lastPos = new Map<number, number>();
  let crashes: number | undefined;
  let recoveries = 0;
  let stalls = 0;
  let owner = first.data.holder?.owner;
  let progressAt = 1;
  const children: string[] = [];
  for (const record of records) {
    const { seq, at, kind } = record;
    const pos = positionOf(record);
    if (pos !== undefined) {
      const others = byPos.get(pos);
      if (others === undefined) byPos.set(pos, [record]);
      else others.push(record);
      const lane = pos < laneRoom ? 0 : laneOf(pos);
      if (pos > (lastPos.get(lane) ?? -1)) lastPos.set(lane, pos);
    }
    if (results.has(kind) && pos !== undefined && !isSynchronous(record)) deliveries.push({ seq, at, pos, record });
    if (isProgress(record)) {
      crashes = undefined;
      recoveries = 0;
      stalls = 0;
      progressAt = seq;
    }
    switch (record.kind) {
      case "effect.intended":
        effects.set(record.data.pos, unsentEffect(record.data));
        break;
      case "effect.dispatched": {
        const effect = effects.get(record.data.pos);
        if (effect !== undefined && (record.data.sub ?? 0) === 0) {
          Object.assign(effect, { status: "DISPATCHED", attempt: record.data.attempt, token: record.token });
        }
        break;
      }
      case "effect.settled": {
        const { pos: at_, to, sub = 0 } = record.data;
        const effect = effects.get(at_);
        if (effect === undefined || sub !== 0) break;
        effect.status = to;
        if (isFailedAttempt(record.data)) effect.failures++;
        effect.uncertain ||= leavesDoubt(record.data);
        if (to === "CONFIRMED" || to === "FAILED") deliveries.push({ seq, at, pos: at_, record });
        break;
      }
      case "effect.received": {
        const effect = effects.get(record.data.pos);
        if (effect !== undefined) effect.status = record.data.status;
        break;
      }
      case "gate.resolved":
        if (record.data.note !== undefined) consumed.add(record.data.note);
        break;
      case "signal.refused":
        consumed.add(record.data.note);
        break;
      case "notes.taken": {
        const through = record.data.through;
        const asked = notes.some((note) => note.kind === "cancel.requested" && note.seq > taken && note.seq <= through);
        if (asked && !cancelled) {
          cancelled = true;
          deliveries.push({ seq, at, pos: undefined, record });
        }
        taken = through;
        break;
      }
      case "child.started":
        children.push(record.data.id);
        break;
      case "run.decided":
        decided = record.data;
        break;
      case "run.retried":
        retries = record.data.attempt;
        deliveries = withoutFailure(deliveries, record.data.pos);
        for (const { from, to } of forgotten(record.data)) {
          const kept = (pos_: number): boolean => pos_ < from || laneOf(pos_) !== laneOf(from);
          deliveries = deliveries.filter((delivery) => delivery.pos === undefined || kept(delivery.pos));
          for (const at_ of [...byPos.keys()]) if (!kept(at_)) byPos.delete(at_);
          jumps.set(from, to);
          lastPos = new Map();
          for (const at_ of byPos.keys()) lastPos.set(laneOf(at_), Math.max(lastPos.get(laneOf(at_)) ?? -1, at_));
        }
        break;
      case "lane.opened":
        lanes.set(record.data.name, record.data.lane);
        break;
      case "term.started":
        // Whoever takes over from itself was slow, not dead.
        if (record.data.reason === "recovery" && record.data.owner !== owner) recoveries++;
        owner = record.data.owner;
        break;
      case "run.stuck":
        stuck = { record: record.data, taken };
        break;
      case "run.unstuck":
        stuck = undefined;
        break;
      case "run.suspected":
        crashes = record.data.crashes;
        break;
      case "replay.stalled":
        stalls = record.data.attempt;
        break;
      default:
    }
  }
  const head = records.at(-1)!.seq;
  return {
    created: first.data,
    head,
    deliveries,
    byPos,
    effects,
    taken,
    used: (note) => isUsed(note, byPos, consumed, records),
    cancelled,
    decided,
    stuck,
    retries,
    jumps,
    lanes,
    lastPos,
    crashes,
    recoveries,
    stalls,
    progressAt,
    children,
  };
}

const unsentEffect = (intended: RecordData<"effect.intended">): EffectState => ({
  intended,
  status: "PENDING",
  attempt: 0,
  failures: 0,
  uncertain: false,
  token: 0n,
});

/** What a failure that is tried again makes forgotten, in each lane. */
function forgotten({ from, to, lanes = [] }: RecordData<"run.retried">): readonly { from: number; to: number }[] {
  return from === undefined || to === undefined ? lanes : [{ from, to }, ...lanes];
}

/**
 * The failure that ended the run is tried again: its result is no longer handed out, nor that of anything that failed
 * beside it later (nothing was asked for in between). A failure that the code dealt with stays.
 */
function withoutFailure(deliveries: Delivery[], pos: number | undefined): Delivery[] {
  const from = deliveries.findLast((delivery) => delivery.pos === pos && failed(delivery.record))?.seq;
  if (pos === undefined || from === undefined) return deliveries;
  return deliveries.filter(({ seq, record }) => seq < from || !failed(record));
}

function failed(record: JournalRecord): boolean {
  if (record.kind === "effect.received") return record.data.status === "REFUSED";
  return (record.kind === "step.done" || record.kind === "decision.made") && record.data.error !== undefined;
}

/**
 * Whether a record shows that the run has moved on. What a successor repeats after a crash (a term, an attempt) does not,
 * or a run that kills its process in every attempt would look busy for ever.
 */
export function isProgress(record: NewRecord): boolean {
  switch (record.kind) {
    case "term.started":
    case "term.ended":
    case "run.suspected":
    case "replay.stalled":
    case "notes.taken":
      return false;
    case "effect.dispatched":
      return record.data.attempt <= 1;
    case "effect.settled":
      return record.data.to !== "PENDING";
    default:
      return true;
  }
}

export function positionOf(record: JournalRecord): number | undefined {
  const { data } = record as { data: { pos?: unknown; sub?: unknown } };
  if (typeof data.pos !== "number" || record.kind.startsWith("obligation.")) return undefined;
  return data.pos;
}

function isUsed(
  note: Note,
  byPos: ReadonlyMap<number, readonly JournalRecord[]>,
  consumed: ReadonlySet<number>,
  records: readonly JournalRecord[],
): boolean {
  const has = (pos: number, ...kinds: string[]): boolean =>
    byPos.get(pos)?.some(({ kind }) => kinds.includes(kind)) ?? false;
  switch (note.kind) {
    case "signal.sent":
      return consumed.has(note.seq);
    case "timer.fired":
      return has(note.data.pos, "sleep.ended", "gate.resolved");
    case "effect.outcome":
      return note.data.sub !== 0 || has(note.data.pos, "effect.received");
    case "child.settled":
      return records.some((record) => record.kind === "child.received" && record.data.childPos === note.data.pos);
    default:
      return true;
  }
}

/** Taken synchronously by the code: there is nobody to hand it to. */
function isSynchronous(record: JournalRecord): boolean {
  return record.kind === "sample.taken" && record.data.name === nowName;
}

import { type AttemptHistory, chargeAttempt, isUncertainRetry } from "../../model/attempt.ts";
import { deadlineTimer, isScopeTimer, scopeTimer } from "../../model/projection.ts";
import { laneOf, laneRoom } from "../../model/record-context.ts";
import type { JournalRecord, RecordData } from "../../model/records.ts";
import type { Delivery, Generation } from "./delivery.ts";
import { isProgress, positionOf } from "./progress.ts";
import { discardedRanges, withoutFailure } from "./retried.ts";
import { createdBy, stoppedBefore } from "./start-notes.ts";
import { isUsed } from "./used-notes.ts";

export type { Delivery } from "./delivery.ts";

/** The name of the sample that `now` takes; a workflow may not use it. */
export const nowName = "now()";

/** A record of an inbox. */
export type Note = JournalRecord;

export interface EffectState {
  readonly intended: RecordData<"effect.intended">;
  status: string;
  attempt: number;
  /** Failed attempts. Those that a crash or a drain interrupted do not count. */
  failures: number;
  interruptions?: number;
  /** An earlier attempt may have happened, although the effect is sent again. */
  uncertain: boolean;
  token: bigint;
}

/** The state of a run according to its journal, folded once when a drive starts. */
export interface History {
  /** The run's creation, with the input of the current generation. */
  readonly created: RecordData<"run.created">;
  readonly head: number;
  /** The current generation: its number, its first record, the lane of its code, and the notes taken before it. */
  readonly generation: Generation;
  /** What replay delivers, in journal order. */
  readonly deliveries: readonly Delivery[];
  /** All records of operations, by position; replay compares the code with them. */
  readonly byPos: ReadonlyMap<number, readonly JournalRecord[]>;
  readonly effects: ReadonlyMap<number, EffectState>;
  readonly taken: number;
  /** Whether a record of the journal has used this note. */
  used(note: Note): boolean;
  readonly cancelled: boolean;
  readonly decided: RecordData<"run.decided"> | undefined;
  /** Set while the run is STUCK, with its record's number and the number of notes that had been taken before. */
  readonly stuck:
    | { readonly record: RecordData<"run.stuck">; readonly seq: number; readonly taken: number }
    | undefined;
  /** The record with which an operator last resumed the run; 0: none. */
  readonly unstuckSeq: number;
  readonly retries: number;
  /** Ranges of discarded positions, from start to end: their operations came after a failure that is retried. */
  readonly jumps: ReadonlyMap<number, number>;
  /** The number of each lane, by its path. */
  readonly lanes: ReadonlyMap<string, number>;
  /** The highest recorded position of each lane. */
  readonly lastPos: ReadonlyMap<number, number>;
  /** Crashes while driven alone, since the run last made progress; undefined: not driven alone since then. */
  readonly crashes: number | undefined;
  /** Terms that started because the previous holder crashed, since the run last made progress. */
  readonly recoveries: number;
  /** The last record that says of a term that it ended while bodies may have been running; 0: none. */
  readonly lostSeq: number;
  /** Replays that waited in vain, since the run last made progress. */
  readonly stalls: number;
  /** Terms that ended because their holder stalled, since the run last made progress. */
  readonly stalledTerms: number;
  /** The progress note of the last term that left one, since the run last made progress. */
  readonly lastNote: string | undefined;
  /** The limit on stalls in force; undefined: none. */
  readonly maxStallMs: number | undefined;
  /** Its deadline has been set. */
  readonly deadlineSet: boolean;
  /** The record with which the run last made progress. */
  readonly progressAt: number;
  /** Ids of the child runs. */
  readonly children: readonly string[];
  /** The names that the run has published. */
  readonly published: Set<string>;
  /** The last record that ended each scope, also one that a retry has discarded, by the scope's position. */
  readonly scopeEnds: ReadonlyMap<number, number>;
  /** The run has opened a callback. */
  readonly hasCallbacks: boolean;
  /** An operator has moved the run to this build, which has not replayed it yet. */
  readonly trial: { readonly build: string; readonly from: string } | undefined;
  /** Why the run ends although its code was never called: it waited in a queue, or for its start time. */
  readonly stoppedEarly: "cancelled" | "expired" | undefined;
}

const trialOf = ({ build, from, trial }: RecordData<"run.pinned">): History["trial"] =>
  trial === true && from !== undefined ? { build, from } : undefined;

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
  "scope.closed",
  "saga.compensated",
]);

/** `admitted`: the head of the journal, a term that admitted the run and is not among the records. */
export const foldHistory = (
  records: readonly JournalRecord[],
  notes: readonly Note[],
  admitted?: { readonly head: number },
): History => new FoldedHistory(records, notes, admitted);

class FoldedHistory implements History {
  created: RecordData<"run.created">;
  generation: Generation;
  readonly head: number;
  deliveries: Delivery[] = [];
  byPos = new Map<number, JournalRecord[]>();
  effects = new Map<number, EffectState>();
  taken = 0;
  cancelled = false;
  decided: RecordData<"run.decided"> | undefined;
  stuck: History["stuck"];
  trial: History["trial"];
  unstuckSeq = 0;
  retries = 0;
  jumps = new Map<number, number>();
  lanes = new Map<string, number>();
  lastPos = new Map<number, number>();
  crashes: number | undefined;
  recoveries = 0;
  lostSeq = 0;
  stalls = 0;
  stalledTerms = 0;
  lastNote: string | undefined;
  maxStallMs: number | undefined;
  deadlineSet = false;
  progressAt = 1;
  children: string[] = [];
  published = new Set<string>();
  hasCallbacks = false;
  scopeEnds = new Map<number, number>();
  readonly stoppedEarly: History["stoppedEarly"];
  #admitted = false;
  readonly #notes: readonly Note[];
  /** Numbers of the notes that a record has used. */
  readonly #consumed = new Set<number>();
  /** Positions of the children whose results the code has received. */
  readonly #received = new Set<number>();
  #owner: string | undefined;
  /** Notes that an earlier generation has used, or had no use for. */
  #dropped: (note: Note) => boolean = () => false;

  constructor(records: readonly JournalRecord[], notes: readonly Note[], admitted?: { readonly head: number }) {
    const [first] = records;
    if (first?.kind !== "run.created") throw new Error("a journal begins with run.created");
    this.created = createdBy(first.data, notes);
    const { generation: number = 1, pos = 0 } = first.data.fork?.generation ?? {};
    this.generation = { number, begins: 1, lane: laneOf(pos), notesTaken: 0 };
    this.head = admitted?.head ?? records.at(-1)!.seq;
    this.#admitted = admitted !== undefined;
    this.#notes = notes;
    this.#owner = first.data.holder?.owner;
    this.maxStallMs = first.data.maxStallMs;
    for (const record of records) this.#add(record);
    this.stoppedEarly = this.generation.begins > 1 ? undefined : stoppedBefore(this.created, notes, this.#admitted);
  }

  used(note: Note): boolean {
    if (this.#dropped(note)) return true;
    if (note.kind === "timer.fired" && isScopeTimer(note.data.purpose)) return this.#hasEnded(note.data);
    return isUsed(note, this.byPos, this.#consumed, this.#received);
  }

  /** The scope has ended since this timer was set. */
  #hasEnded({ pos, purpose }: { readonly pos: number; readonly purpose: string }): boolean {
    const opened = this.byPos
      .get(pos)
      ?.findLast((record) => record.kind === "scope.opened" && scopeTimer(record.data.again) === purpose);
    return opened === undefined || (this.scopeEnds.get(pos) ?? 0) > opened.seq;
  }

  #add(record: JournalRecord): void {
    const { seq, at, kind } = record;
    const pos = positionOf(record);
    if (pos !== undefined) this.#index(pos, record);
    if ((results.has(kind) || isCallback(record)) && pos !== undefined && !isSynchronous(record))
      this.deliveries.push({ seq, at, pos, record });
    if (isProgress(record)) {
      this.crashes = undefined;
      this.recoveries = 0;
      this.stalls = 0;
      this.stalledTerms = 0;
      this.lastNote = undefined;
      this.progressAt = seq;
    }
    if (isCallback(record)) this.hasCallbacks = true;
    if (kind.startsWith("effect.")) this.#addToEffect(record);
    else if (record.kind === "run.pinned") this.trial = trialOf(record.data);
    else if (kind === "run.continued") this.#startGeneration(record);
    else this.#addToRun(record);
  }

  #index(pos: number, record: JournalRecord): void {
    const others = this.byPos.get(pos);
    if (others === undefined) this.byPos.set(pos, [record]);
    else others.push(record);
    const lane = pos < laneRoom ? 0 : laneOf(pos);
    if (pos > (this.lastPos.get(lane) ?? -1)) this.lastPos.set(lane, pos);
  }

  #addToEffect(record: JournalRecord): void {
    switch (record.kind) {
      case "effect.intended":
        this.effects.set(record.data.pos, unsentEffect(record.data));
        break;
      case "effect.dispatched": {
        const effect = this.effects.get(record.data.pos);
        if (effect !== undefined && (record.data.sub ?? 0) === 0) {
          Object.assign(effect, { status: "DISPATCHED", attempt: record.data.attempt, token: record.token });
        }
        break;
      }
      case "effect.settled": {
        const { pos, to, sub = 0 } = record.data;
        const effect = this.effects.get(pos);
        if (effect === undefined || sub !== 0) break;
        effect.status = to;
        Object.assign(effect, chargeAttempt<AttemptHistory>(effect, record.data));
        effect.uncertain ||= isUncertainRetry(record.data);
        const { seq, at } = record;
        if (to === "CONFIRMED" || to === "FAILED") this.deliveries.push({ seq, at, pos, record });
        break;
      }
      case "effect.received": {
        const effect = this.effects.get(record.data.pos);
        if (effect !== undefined) effect.status = record.data.status;
        break;
      }
      case "effect.withdrawn": {
        const effect = this.effects.get(record.data.pos);
        if (effect !== undefined) effect.status = "WITHDRAWN";
        break;
      }
      default:
    }
  }

  #addToRun(record: JournalRecord): void {
    switch (record.kind) {
      case "state.published":
        this.published.add(record.data.name);
        break;
      case "gate.resolved":
        if (record.data.note !== undefined) this.#consumed.add(record.data.note);
        break;
      case "signal.refused":
        this.#consumed.add(record.data.note);
        break;
      case "notes.taken":
        this.#takeNotes(record, record.data.through);
        break;
      case "child.started":
        if (record.data.startedBy === undefined) this.children.push(record.data.id);
        break;
      case "child.received":
        this.#received.add(record.data.childPos);
        break;
      case "run.decided":
        this.decided = record.data;
        break;
      case "run.retried":
        this.#discard(record.data);
        break;
      case "scope.closed":
        this.#endScope(record);
        break;
      case "lane.opened":
        this.lanes.set(record.data.name, record.data.lane);
        break;
      case "term.started":
        // An owner that takes over its own term was slow and has not crashed.
        if (record.data.reason === "recovery" && record.data.owner !== this.#owner) this.recoveries++;
        this.#owner = record.data.owner;
        this.#admitted ||= record.data.admitted !== undefined;
        if (record.data.reason === "stalled") this.stalledTerms++;
        if (record.data.previous !== undefined) this.lostSeq = record.seq;
        this.lastNote = record.data.previous?.progressNote ?? this.lastNote;
        break;
      case "term.ended":
        // A body did not end in time, or its result was not written.
        if (record.data.reason === "drained" || record.data.unrecorded === true) this.lostSeq = record.seq;
        this.lastNote = record.data.term?.progressNote ?? this.lastNote;
        break;
      case "run.limited":
        this.maxStallMs = record.data.maxStallMs;
        break;
      case "timer.set":
        if (record.data.purpose === deadlineTimer.purpose) this.deadlineSet = true;
        break;
      case "run.stuck":
        this.stuck = { record: record.data, seq: record.seq, taken: this.taken };
        break;
      case "run.unstuck":
        this.stuck = undefined;
        this.unstuckSeq = record.seq;
        break;
      case "run.suspected":
        this.crashes = record.data.crashes;
        break;
      case "replay.stalled":
        this.stalls = record.data.attempt;
        break;
      default:
    }
  }

  /** A time-out is delivered to the scope itself, because the code has not requested it. */
  #endScope(record: Extract<JournalRecord, { kind: "scope.closed" }>): void {
    const { seq, at, data } = record;
    this.scopeEnds.set(data.of, seq);
    if (data.reason === "timeout") this.deliveries.push({ seq, at, pos: data.of, record });
  }

  #takeNotes(record: JournalRecord, through: number): void {
    const { seq, at } = record;
    const isNew = (note: Note): boolean => note.seq > this.taken && note.seq <= through;
    if (!this.cancelled && this.#notes.some((note) => note.kind === "cancel.requested" && isNew(note))) {
      this.cancelled = true;
      this.deliveries.push({ seq, at, pos: undefined, record });
    }
    this.taken = through;
  }

  /** Nothing of the earlier generations is replayed. What the record does not carry starts from nothing. */
  #startGeneration({ data, seq }: JournalRecord & { readonly kind: "run.continued" }): void {
    const { input, inputHash, checked, labels, notesTaken, notes, maxStallMs } = data;
    const { checked: _checked, ...created } = this.created;
    this.created = { ...created, input, inputHash, ...(checked && { checked }), ...(labels && { labels }) };
    this.generation = { number: data.generation, begins: seq, lane: laneOf(data.pos), notesTaken };
    [this.byPos, this.effects, this.lanes] = [new Map(), new Map(), new Map()];
    [this.jumps, this.lastPos, this.scopeEnds] = [new Map(), new Map(), new Map()];
    [this.deliveries, this.children] = [[], []];
    this.published = new Set(data.published);
    this.hasCallbacks = false;
    this.retries = 0;
    this.lostSeq = 0;
    this.maxStallMs = maxStallMs;
    this.deadlineSet = data.deadline === true;
    this.taken = notesTaken;
    const carried = new Set(notes);
    this.#dropped = (note) => note.seq <= notesTaken && !carried.has(note.seq);
  }

  /** The run is retried: discarded operations are neither delivered nor compared any more. */
  #discard(retried: RecordData<"run.retried">): void {
    this.retries = retried.attempt;
    this.deliveries = withoutFailure(this.deliveries, retried.pos);
    for (const { from, to } of discardedRanges(retried)) {
      const kept = (pos: number): boolean => pos < from || laneOf(pos) !== laneOf(from);
      this.deliveries = this.deliveries.filter(({ pos }) => pos === undefined || kept(pos));
      for (const pos of [...this.byPos.keys()]) if (!kept(pos)) this.byPos.delete(pos);
      this.jumps.set(from, to);
      this.lastPos = new Map();
      for (const pos of this.byPos.keys()) {
        this.lastPos.set(laneOf(pos), Math.max(this.lastPos.get(laneOf(pos)) ?? -1, pos));
      }
    }
  }
}

const unsentEffect = (intended: RecordData<"effect.intended">): EffectState => ({
  intended,
  status: "PENDING",
  attempt: 0,
  failures: 0,
  uncertain: false,
  token: 0n,
});

/** An open callback is a result, too: the code receives its token before the call. */
const isCallback = (record: JournalRecord): boolean =>
  record.kind === "gate.opened" && record.data.callback !== undefined;

/** The code reads it synchronously, so there is nothing to deliver. */
function isSynchronous(record: JournalRecord): boolean {
  return record.kind === "sample.taken" && record.data.name === nowName;
}

import { tameThrown } from "../../base/thrown.ts";
import { TapeError } from "../../model/errors.ts";
import { laneRoom } from "../../model/record-context.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import { currentSite, type ExecutionSite, runAt, runSyncAt } from "../../sdk/current.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { ImmediateBodies } from "../core/immediate.ts";
import {
  LiveOperation,
  nameOf,
  type Operation,
  type OperationHandle,
  type OperationOwner,
  resolveWith,
} from "../core/operation.ts";
import { reportThrown } from "../core/report.ts";
import { compare, nested, placeName } from "../replay/divergence.ts";
import type { Note } from "../replay/history.ts";
import { asStored, ignoreRejection, isThenable, toStoredError } from "../replay/stored-value.ts";
import { type Lane, Lanes } from "./lanes.ts";

export type { Operation, OperationHandle } from "../core/operation.ts";

/** What opens a wait, what ends it, and what the code gets then. */
export interface WaitSpec<T> {
  readonly about: string;
  readonly opening?: NewRecord;
  readonly match: (note: Note, opened: JournalRecord | undefined) => NewRecord | undefined;
  readonly answer: (record: NewRecord) => T;
  /** What ends a sleep without a note. */
  readonly rise?: NewRecord;
}

/** Kinds of operations that may be done again at another position: each leaves nothing but its record. */
const repeatableKinds: ReadonlySet<string> = new Set([
  "step.done",
  "sample.taken",
  "decision.made",
  "race.won",
  "patch.marked",
  "timer.set",
]);
type OperationRequest = Pick<Operation<unknown>, "kinds" | "name" | "hash" | "args">;

/** The record of what came of a body. */
type RecordOf = (pos: number, result: { readonly value?: unknown; readonly error?: unknown }) => NewRecord;

/** Which failure is tried again, and what is forgotten with it. */
export type FailureBehind = Pick<RecordData<"run.retried">, "pos" | "from" | "to" | "lanes">;

const withBody: ReadonlySet<string> = new Set(["step.done", "decision.made", "sample.taken", "effect.intended"]);
/** What ends a run failed lately: earlier failures were dealt with. */
const maxTrackedFailures = 16;

/** Everything durable goes through here. Every operation gets its position synchronously, in the order of the calls. */
export class Operations implements OperationOwner {
  readonly drive: DriveHandle;
  readonly lanes: Lanes;
  readonly #immediate: ImmediateBodies;
  readonly #refusable = new Set<LiveOperation<unknown>>();
  readonly #failures: {
    readonly error: unknown;
    readonly pos: number;
    readonly requestedCount: ReadonlyMap<Lane, number>;
  }[] = [];

  /** A race was won: who lost it may still be under way when the function ends. */
  raced = false;

  constructor(drive: DriveHandle) {
    this.drive = drive;
    this.lanes = new Lanes(drive, drive.history);
    this.#immediate = drive.options.immediate.of(drive.history.created.workflow);
  }

  /** The lane in which the code stands that is executing. */
  get laneNow(): Lane {
    return this.#laneAt(currentSite());
  }

  #laneAt(at: ExecutionSite | undefined): Lane {
    const lane = at?.lane as Lane | undefined;
    return lane !== undefined && lane.of === this.drive ? lane : this.lanes.root;
  }

  /** The position that is next in the lane. */
  nextIn(lane: Lane): number {
    const { jumps } = this.drive.history;
    if (jumps.size > 0)
      for (let to = lane.next as number | undefined; to !== undefined; to = jumps.get(to)) lane.next = to;
    return lane.next;
  }

  operation<T>(operation: Operation<T>): Promise<T> {
    const { drive } = this;
    const at = currentSite();
    if (at?.body?.of === drive)
      return ignoreRejection(Promise.reject(this.#nested(operation.kinds[0]!, operation.name, at.body)));
    if (drive.finished || drive.bodyEnded)
      return drive.tooLate(placeName({ kind: operation.kinds[0]!, name: operation.name }));
    const pos = this.#takeIn(this.#laneAt(at), operation);
    if (pos === undefined) return new Promise(() => {}); // the drive is over: nobody is there to hear it
    if (drive.cancelled && operation.evenIfCancelled !== true) return ignoreRejection(Promise.reject(cancelledError()));
    const turn = new LiveOperation<T>(this, pos, operation);
    if (operation.evenIfCancelled !== true) this.#refusable.add(turn as LiveOperation<unknown>);
    drive.replay.request(turn);
    return turn.promise;
  }

  /** What the journal holds and the code has never asked for: the first of it. */
  unasked(): JournalRecord | undefined {
    const { byPos, lastPos } = this.drive.history;
    const rootOnly = lastPos.size === 0 || (lastPos.size === 1 && lastPos.has(0));
    if (!this.lanes.used && rootOnly && (lastPos.get(0) ?? -1) < this.nextIn(this.lanes.root)) return undefined;
    for (const lane of this.lanes.all()) this.nextIn(lane);
    const left = [...byPos].flatMap(([pos, [first]]) => (this.lanes.asked(pos) || first === undefined ? [] : [first]));
    return left.sort((a, b) => a.seq - b.seq)[0];
  }

  /** What was asked for and has no result yet. */
  get open(): string[] {
    return [...this.#refusable].map(placeName);
  }

  /** Operations whose bodies may be running. */
  get bodies(): ReadonlyMap<object, string> {
    const found = new Map<object, string>();
    if (this.drive.activeBodies > 0)
      for (const turn of this.#refusable) if (withBody.has(turn.kind)) found.set(turn, placeName(turn));
    return found;
  }

  /** The code has its result: there is nothing left to refuse. */
  done(turn: LiveOperation<unknown>): void {
    this.#refusable.delete(turn);
  }

  /** What the code was told, if the run should end by it. */
  failed(error: unknown, pos: number): void {
    for (const lane of this.lanes.all()) this.nextIn(lane);
    this.#failures.push({ error, pos, requestedCount: this.lanes.counts() });
    if (this.#failures.length > maxTrackedFailures) this.#failures.shift();
  }

  /** What a body asks for is recorded live and not asked for on replay, where bodies do not run. */
  refuseNested(kind: string, name: string): void {
    const body = currentSite()?.body;
    if (body?.of === this.drive) throw this.#nested(kind, name, body);
  }

  #nested(kind: string, name: string, runBody: NonNullable<ExecutionSite["body"]>): TapeError {
    this.#immediate.exclude(runBody.name);
    const error = nested({ kind, name }, runBody);
    const { log, runId } = this.drive.options;
    if (!this.drive.finished) log("error", "run.nested", { run: runId, error: error.message, next: error.next });
    return error;
  }

  /** The next position; undefined: the journal holds something else there, and the drive is over. */
  nextPosition(asked: OperationRequest): number | undefined {
    return this.#takeIn(this.laneNow, asked);
  }

  #takeIn(lane: Lane, asked: OperationRequest): number | undefined {
    const { drive } = this;
    const pos = this.nextIn(lane);
    lane.next++;
    lane.kinds[pos % laneRoom] = asked.kinds[0];
    if (!lane.known) this.#open(lane);
    const fault = drive.finished ? undefined : compare(drive.history.byPos, pos, asked);
    if (fault === undefined) return pos;
    drive.fail(fault);
    return undefined;
  }

  /** Written before anything that is asked for in it. */
  #open(lane: Lane): void {
    lane.known = true;
    this.writeDetached({ kind: "lane.opened", data: { lane: lane.number, name: lane.path } });
  }

  /** A record that no operation waits for. */
  writeDetached(record: NewRecord): void {
    this.drive.journal.enqueue(
      [record],
      () => {},
      (error) => this.drive.fail(error),
    );
  }

  /** The run is cancelled: whatever waits, waits no longer. Bodies that run see their signal. */
  cancelWaits(): void {
    this.drive.waits.clear();
    for (const turn of [...this.#refusable]) turn.refuse(cancelledError());
    this.#refusable.clear();
  }

  /**
   * The operation whose failure the workflow let pass, if it is what ended it. What was asked for since (in a `finally`)
   * is forgotten with it, if it can be done anew without harm; an act, a child or a gate cannot: then nothing is tried.
   */
  failureBehind(error: unknown): FailureBehind {
    for (let link = error, depth = 0; link !== undefined && depth < 8; depth++) {
      const failure = this.#failures.findLast((one) => one.error === link);
      if (failure !== undefined) return this.#from(failure.pos, failure.requestedCount);
      link = link instanceof Error ? link.cause : undefined;
    }
    return {};
  }

  #from(pos: number, asked: ReadonlyMap<Lane, number>): FailureBehind {
    const spans: { readonly from: number; readonly to: number }[] = [];
    for (const lane of this.lanes.all()) {
      const from = asked.get(lane) ?? lane.number * laneRoom;
      const to = this.nextIn(lane);
      if (from === to) continue;
      const kinds = lane.kinds.slice(from % laneRoom, to % laneRoom);
      if (!kinds.every((kind) => kind === undefined || repeatableKinds.has(kind))) return {};
      spans.push({ from, to });
    }
    const [first, ...lanes] = spans;
    return { pos, ...first, ...(lanes.length > 0 && { lanes }) };
  }

  /** Runs a body of the user's under the lease and records what came of it. */
  body<T>(turn: OperationHandle<T>, body: () => T | Promise<T>, record: RecordOf): void {
    const { drive } = this;
    drive.activeBodies++;
    try {
      drive.options.lease.assert();
      const result = this.#call(turn, body);
      if (isThenable(result)) {
        result
          .then((value) => this.#returned(turn, value, record))
          .catch((thrown) => this.#threw(turn, thrown, record));
      } else this.#returned(turn, result, record); // most steps: no promise of their own
    } catch (thrown) {
      this.#threw(turn, thrown, record);
    }
  }

  #call<T>(turn: OperationHandle<T>, body: () => T | Promise<T>): T | Promise<T> {
    const at: ExecutionSite = { context: this.drive.context, body: turn };
    const immediate = this.#immediate.has(turn.name);
    const result = immediate ? runSyncAt(at, body) : runAt(at, body);
    if (isThenable(result)) this.#immediate.exclude(turn.name);
    else if (!immediate) this.#immediate.add(turn.name);
    return result;
  }

  #returned<T>(turn: OperationHandle<T>, result: T, record: RecordOf): void {
    const value = asStored(result);
    if (!this.drive.finished) turn.end(record(turn.pos, { value }), value);
    this.#bodyOver();
  }

  #threw<T>(turn: OperationHandle<T>, thrown: unknown, record: RecordOf): void {
    const tame = tameThrown(thrown);
    const error = toStoredError(tame);
    if (!this.drive.finished) reportThrown(this.drive, turn, tame);
    if (!this.drive.finished) turn.endWithError(error, record(turn.pos, { error }));
    this.#bodyOver();
  }

  #bodyOver(): void {
    this.drive.activeBodies--;
    this.drive.parkIfIdle();
  }

  /** Writes what opens the wait, unless the journal has it already, then waits for a note that ends it. */
  wait<T>(turn: OperationHandle<T>, waiting: WaitSpec<T>): void {
    const { drive } = this;
    const { opening, about, match, answer, rise } = waiting;
    const opened =
      opening === undefined ? undefined : drive.history.byPos.get(turn.pos)?.find(({ kind }) => kind === opening.kind);
    const wait = (): void => {
      let ended: NewRecord | undefined;
      drive.waits.add({
        pos: turn.pos,
        description: about,
        match: (note) => {
          ended = match(note, opened);
          return ended;
        },
        written: () => resolveWith(() => answer(ended!), turn),
        ...(rise && {
          endSleep: () => {
            ended = rise;
            return rise;
          },
        }),
      });
      drive.matchWaits();
    };
    if (opening === undefined || opened !== undefined) wait();
    else
      drive.journal.enqueue([opening], wait, (error) =>
        turn.endWithError(asStored(error), refusalRecord(opening, turn.pos, error)),
      );
  }
}

function refusalRecord(record: NewRecord, pos: number, error: TapeError): NewRecord {
  return { kind: "step.done", data: { pos, name: nameOf(record), error: asStored(error) } };
}

/** The value that a record holds; throws what was thrown. */
export function unwrap<T>(data: { readonly value?: unknown; readonly error?: unknown }): T {
  if (data.error !== undefined) throw data.error;
  return data.value as T;
}

export const cancelledError = (): TapeError => new TapeError("TAPE_CANCELLED", "the run was cancelled");

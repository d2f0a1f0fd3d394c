import { tameThrown } from "../../base/thrown.ts";
import { TapeError } from "../../model/errors.ts";
import { laneRoom } from "../../model/record-context.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import { currentSite, type ExecutionSite, runAt, runSyncAt } from "../../sdk/current.ts";
import { asRecorded } from "../core/as-recorded.ts";
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
import { compare, nested, operationName } from "../replay/divergence.ts";
import type { Note } from "../replay/history.ts";
import { asStored, ignoreRejection, isThenable, toStoredError } from "../replay/stored-value.ts";
import { type Lane, Lanes } from "./lanes.ts";
import type { OpenSpend } from "./open-spend.ts";

export type { Operation, OperationHandle } from "../core/operation.ts";

/** How a wait is opened and ended, and what the code receives. */
export interface WaitSpec<T> {
  readonly about: string;
  readonly opening?: NewRecord;
  readonly match: (note: Note, opened: JournalRecord | undefined) => NewRecord | undefined;
  readonly resultOf: (record: NewRecord) => T;
  /** Ends a sleep without a note. */
  readonly endSleepRecord?: NewRecord;
}

/** Kinds of operations that may be repeated at another position, because each leaves only its record. */
const repeatableKinds: ReadonlySet<string> = new Set([
  "step.done",
  "sample.taken",
  "decision.made",
  "race.won",
  "patch.marked",
  "state.published",
  "timer.set",
]);
type OperationRequest = Pick<Operation<unknown>, "kinds" | "name" | "hash" | "args" | "commits">;

/** Makes the record of a body's result. */
export type RecordOf = (pos: number, result: { readonly value?: unknown; readonly error?: unknown }) => NewRecord;

/** Which failure is retried, and which positions are discarded with it. */
export type FailureBehind = Pick<RecordData<"run.retried">, "pos" | "from" | "to" | "lanes">;

const withBody: ReadonlySet<string> = new Set(["step.done", "decision.made", "sample.taken", "effect.intended"]);
/** A run ends by a recent failure; the code has handled earlier ones. */
const maxTrackedFailures = 16;

/** The durable operations of a run. Each gets its position synchronously, in the order of the calls. */
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

  /** A body of this term has ended. */
  #advanced = false;

  /** A race was won; its losers may still be in progress when the function ends. */
  raced = false;

  constructor(drive: DriveHandle) {
    this.drive = drive;
    this.lanes = new Lanes(drive, drive.history);
    this.#immediate = drive.options.immediate.of(drive.history.created.workflow);
  }

  /** The lane of the code that is executing. */
  get laneNow(): Lane {
    return this.#laneAt(currentSite());
  }

  #laneAt(at: ExecutionSite | undefined): Lane {
    const lane = at?.lane as Lane | undefined;
    return lane !== undefined && lane.of === this.drive ? lane : this.lanes.root;
  }

  /** The next position of the lane, past positions that a retry has discarded. */
  nextIn(lane: Lane): number {
    const { jumps } = this.drive.history;
    if (jumps.size > 0)
      for (let to = lane.next as number | undefined; to !== undefined; to = jumps.get(to)) lane.next = to;
    return lane.next;
  }

  /** `known`: the position of an operation whose next result this is; it takes no position of its own. */
  operation<T>(operation: Operation<T>, known?: number): Promise<T> {
    const { drive } = this;
    const at = currentSite();
    if (at?.body?.of === drive)
      return ignoreRejection(Promise.reject(this.#nested(operation.kinds[0]!, operation.name, at.body)));
    if (drive.finished || drive.bodyEnded)
      return drive.tooLate(operationName({ kind: operation.kinds[0]!, name: operation.name }));
    const pos = known ?? this.#takeIn(this.#laneAt(at), operation);
    if (pos === undefined) return new Promise(() => {}); // the drive is over
    if (drive.cancelled && operation.evenIfCancelled !== true) return ignoreRejection(Promise.reject(cancelledError()));
    const spend = at?.spend as OpenSpend | undefined;
    const metered = spend?.of === drive ? spend.meter(operation) : undefined;
    const live = new LiveOperation<T>(this, pos, metered?.operation ?? operation);
    if (metered !== undefined) live.promise.then(metered.settled, metered.settled);
    if (operation.evenIfCancelled !== true) this.#refusable.add(live as LiveOperation<unknown>);
    drive.replay.request(live);
    return live.promise;
  }

  /** The first operation in the journal that the code has never requested. */
  firstUnrequested(): JournalRecord | undefined {
    const { byPos, lastPos } = this.drive.history;
    const rootOnly = lastPos.size === 0 || (lastPos.size === 1 && lastPos.has(0));
    if (!this.lanes.used && rootOnly && (lastPos.get(0) ?? -1) < this.nextIn(this.lanes.root)) return undefined;
    for (const lane of this.lanes.all()) this.nextIn(lane);
    const left = [...byPos].flatMap(([pos, [first]]) =>
      this.lanes.isRequested(pos) || first === undefined ? [] : [first],
    );
    return left.sort((a, b) => a.seq - b.seq)[0];
  }

  /** Operations without a result, by name. */
  get open(): string[] {
    return [...this.#refusable].map(operationName);
  }

  /** Operations whose bodies may be running, by name. */
  get bodies(): ReadonlyMap<object, string> {
    const found = new Map<object, string>();
    if (this.drive.activeBodies > 0)
      for (const live of this.#refusable) if (withBody.has(live.kind)) found.set(live, operationName(live));
    return found;
  }

  /** The code has the result, so a cancellation no longer rejects the operation. */
  done(operation: LiveOperation<unknown>): void {
    this.#refusable.delete(operation);
  }

  /** Remembers a failure that the code receives, in case the run ends by it. */
  failed(error: unknown, pos: number): void {
    for (const lane of this.lanes.all()) this.nextIn(lane);
    this.#failures.push({ error, pos, requestedCount: this.lanes.counts() });
    if (this.#failures.length > maxTrackedFailures) this.#failures.shift();
  }

  /** Rejects an operation inside a body: a replay does not run bodies, so it would not request the operation. */
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

  /** The next position; undefined: the journal has another operation there, and the drive is over. */
  nextPosition(request: OperationRequest): number | undefined {
    return this.#takeIn(this.laneNow, request);
  }

  #takeIn(lane: Lane, request: OperationRequest): number | undefined {
    const { drive } = this;
    const pos = this.nextIn(lane);
    lane.next++;
    lane.kinds[pos % laneRoom] = request.commits === true ? "transaction" : request.kinds[0];
    if (!lane.known) this.#open(lane);
    const fault = drive.finished ? undefined : compare(drive.history.byPos, pos, request);
    if (fault === undefined) return pos;
    drive.fail(fault);
    return undefined;
  }

  /** Written before any operation in the lane. */
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

  /** Rejects every pending operation of a cancelled run. Bodies that run see their abort signal. */
  cancelWaits(): void {
    this.drive.waits.clear();
    for (const live of [...this.#refusable]) live.refuse(cancelledError());
    this.#refusable.clear();
  }

  /**
   * The operation whose failure ended the workflow, if it was one. Operations since then (in a `finally`) are discarded
   * with it if repeating them does no harm. An effect, a child or a gate may not be repeated: then nothing is retried.
   */
  failureBehind(error: unknown): FailureBehind {
    for (let link = error, depth = 0; link !== undefined && depth < 8; depth++) {
      const failure = this.#failures.findLast((failed) => failed.error === link);
      if (failure !== undefined) return this.#from(failure.pos, failure.requestedCount);
      link = link instanceof Error ? link.cause : undefined;
    }
    return {};
  }

  #from(pos: number, requestedCount: ReadonlyMap<Lane, number>): FailureBehind {
    const spans: { readonly from: number; readonly to: number }[] = [];
    for (const lane of this.lanes.all()) {
      const from = requestedCount.get(lane) ?? lane.number * laneRoom;
      const to = this.nextIn(lane);
      if (from === to) continue;
      const kinds = lane.kinds.slice(from % laneRoom, to % laneRoom);
      if (!kinds.every((kind) => kind === undefined || repeatableKinds.has(kind))) return {};
      spans.push({ from, to });
    }
    const [first, ...lanes] = spans;
    return { pos, ...first, ...(lanes.length > 0 && { lanes }) };
  }

  /** Runs a body of the workflow under the lease and records its result. */
  body<T>(handle: OperationHandle<T>, body: () => T | Promise<T>, record: RecordOf): void {
    const { drive } = this;
    drive.activeBodies++;
    try {
      drive.options.lease.assert();
      const result = this.callBody(handle, body);
      if (isThenable(result)) {
        result
          .then((value) => this.returned(handle, value, record))
          .catch((thrown) => this.threw(handle, thrown, record));
      } else this.returned(handle, result, record); // most steps return no promise
    } catch (thrown) {
      this.threw(handle, thrown, record);
    }
  }

  callBody<T>(handle: OperationHandle<T>, body: () => T | Promise<T>): T | Promise<T> {
    const at: ExecutionSite = { context: this.drive.context, body: handle };
    const immediate = this.#immediate.has(handle.name);
    const result = immediate ? runSyncAt(at, body) : runAt(at, body);
    if (isThenable(result)) this.#immediate.exclude(handle.name);
    else if (!immediate) this.#immediate.add(handle.name);
    return result;
  }

  returned<T>(handle: OperationHandle<T>, result: T, record: RecordOf): void {
    const value = asRecorded(this.drive, () => record(handle.pos, {}).kind, "value", asStored(result));
    this.#advanced = true;
    const streamed = this.drive.streams?.settle(handle.pos);
    if (streamed === undefined) this.#end(handle, value, record);
    else void streamed.then(() => this.#end(handle, value, record)); // a result implies its chunks
  }

  #end<T>(handle: OperationHandle<T>, value: T, record: RecordOf): void {
    if (!this.drive.finished) handle.end(record(handle.pos, { value }), value);
    this.bodyOver();
  }

  threw<T>(handle: OperationHandle<T>, thrown: unknown, record: RecordOf): void {
    const tame = tameThrown(thrown);
    const error = asRecorded(this.drive, () => record(handle.pos, {}).kind, "error", toStoredError(tame));
    this.#advanced = true;
    if (!this.drive.finished) reportThrown(this.drive, handle, tame);
    const streamed = this.drive.streams?.settle(handle.pos);
    const end = (): void => {
      if (!this.drive.finished) handle.endWithError(error, record(handle.pos, { error }));
      this.bodyOver();
    };
    if (streamed === undefined) end();
    else void streamed.then(end);
  }

  /** The body has written the record of its result itself. */
  committed(): void {
    this.#advanced = true;
    this.bodyOver();
  }

  bodyOver(): void {
    this.drive.activeBodies--;
    this.drive.parkIfIdle();
  }

  /**
   * The progress note of an interrupted body. `repeated`: an earlier attempt in this term may have left it. Once a body
   * of this term has ended, the note of the previous term is about work that is done.
   */
  lastNote(repeated: boolean): string | undefined {
    const { history, options } = this.drive;
    const own = repeated ? options.lease.counters().progressNote : undefined;
    return own ?? (this.#advanced ? undefined : history.lastNote);
  }

  /** Writes the opening record unless the journal has it, then waits for a note that ends the wait. */
  wait<T>(handle: OperationHandle<T>, spec: WaitSpec<T>): void {
    const { drive } = this;
    const { opening, about, match, resultOf, endSleepRecord } = spec;
    const opened =
      opening === undefined
        ? undefined
        : drive.history.byPos.get(handle.pos)?.find(({ kind }) => kind === opening.kind);
    const wait = (): void => {
      let ended: NewRecord | undefined;
      drive.waits.add({
        pos: handle.pos,
        description: about,
        match: (note) => {
          ended = match(note, opened);
          return ended;
        },
        written: () => resolveWith(() => resultOf(ended!), handle),
        ...(endSleepRecord && {
          endSleep: () => {
            ended = endSleepRecord;
            return endSleepRecord;
          },
        }),
      });
      drive.matchWaits();
    };
    if (opening === undefined || opened !== undefined) wait();
    else
      drive.journal.enqueue([opening], wait, (error) =>
        handle.endWithError(asStored(error), refusalRecord(opening, handle.pos, error)),
      );
  }
}

function refusalRecord(record: NewRecord, pos: number, error: TapeError): NewRecord {
  return { kind: "step.done", data: { pos, name: nameOf(record), error: asStored(error) } };
}

/** The value of a record; throws its error if it has one. */
export function unwrap<T>(data: { readonly value?: unknown; readonly error?: unknown }): T {
  if (data.error !== undefined) throw data.error;
  return data.value as T;
}

export const cancelledError = (): TapeError => new TapeError("TAPE_CANCELLED", "the run was cancelled");

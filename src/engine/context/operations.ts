import { tameThrown } from "../../base/thrown.ts";
import type { TapeError } from "../../model/errors.ts";
import { laneRoom } from "../../model/record-context.ts";
import type { JournalRecord, NewRecord } from "../../model/records.ts";
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
import { type FailureBehind, Failures } from "./failures.ts";
import { GenerationState, ownWork } from "./generation-state.ts";
import { type Lane, Lanes } from "./lanes.ts";
import type { OpenSpend } from "./open-spend.ts";
import { cancelledError, isExposed, reaches, refusalAt, type Scope, stopsAt } from "./scope.ts";
import { effectRefusal, wasSent } from "./scope-effects.ts";

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

type OperationRequest = Pick<Operation<unknown>, "kinds" | "name" | "hash" | "args" | "commits">;

/** Makes the record of a body's result. */
export type RecordOf = (pos: number, result: { readonly value?: unknown; readonly error?: unknown }) => NewRecord;

const withBody: ReadonlySet<string> = new Set(["step.done", "decision.made", "sample.taken", "effect.intended"]);
/** The durable operations of a run. Each gets its position synchronously, in the order of the calls. */
export class Operations implements OperationOwner {
  readonly drive: DriveHandle;
  readonly lanes: Lanes;
  readonly #immediate: ImmediateBodies;
  readonly #refusable = new Set<LiveOperation<unknown>>();
  readonly #failures = new Failures();

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

  /** The scope of the code that executes at this site. */
  scopeAt(at: ExecutionSite | undefined): Scope | undefined {
    const scope = at?.scope as Scope | undefined;
    return scope !== undefined && scope.of === this.drive ? scope : undefined;
  }

  /**
   * `known`: the position of an operation whose next result this is; it takes no position of its own. `scope`: the one
   * that it belongs to, if that is not the code's.
   */
  operation<T>(operation: Operation<T>, where: { known?: number; scope?: Scope | undefined } = anywhere): Promise<T> {
    const { drive } = this;
    const at = currentSite();
    if (at?.body?.of === drive)
      return ignoreRejection(Promise.reject(this.#nested(operation.kinds[0]!, operation.name, at.body)));
    if (drive.finished || drive.bodyEnded)
      return drive.tooLate(operationName({ kind: operation.kinds[0]!, name: operation.name }));
    const pos = where.known ?? this.#takeIn(this.#laneAt(at), operation);
    if (pos === undefined) return new Promise(() => {}); // the drive is over
    const scope = "scope" in where ? where.scope : this.scopeAt(at);
    if ((drive.cancelled || scope !== undefined) && operation.evenIfCancelled !== true) {
      const refusal = this.#refusalOf(operation, scope);
      if (refusal !== undefined) return ignoreRejection(Promise.reject(refusal));
    }
    const spend = at?.spend as OpenSpend | undefined;
    const metered = spend?.of === drive ? spend.meter(operation) : undefined;
    const live = new LiveOperation<T>(this, pos, metered?.operation ?? operation, scope);
    if (scope?.inSaga === true && operation.kinds[0] === "effect.intended") scope.addEffect(pos);
    if (metered !== undefined) live.promise.then(metered.settled, metered.settled);
    if (operation.evenIfCancelled !== true) this.#refusable.add(live as LiveOperation<unknown>);
    drive.replay.request(live);
    return live.promise;
  }

  /** The first operation in the journal that the code has never requested. */
  firstUnrequested(): JournalRecord | undefined {
    const { byPos, lastPos } = this.drive.history;
    const { root } = this.lanes;
    const rootOnly = lastPos.size === 0 || (lastPos.size === 1 && lastPos.has(root.number));
    if (!this.lanes.used && rootOnly && (lastPos.get(root.number) ?? -1) < this.nextIn(root)) return undefined;
    for (const lane of this.lanes.all()) this.nextIn(lane);
    const left = [...byPos].flatMap(([pos, [first]]) =>
      this.lanes.isRequested(pos) || first === undefined ? [] : [first],
    );
    return left.sort((a, b) => a.seq - b.seq)[0];
  }

  readonly generation = new GenerationState();
  /** Effects without a result, and children that are being started. */
  get openWork(): readonly Promise<unknown>[] {
    return [...this.#refusable].flatMap(({ kind, promise }) => (ownWork.has(kind) ? [promise] : []));
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
    this.#failures.add({ error, pos, requestedCount: this.lanes.counts() });
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

  #refusalOf({ evenIfClosed }: Pick<Operation<unknown>, "evenIfClosed">, scope: Scope | undefined) {
    const { drive } = this;
    if (evenIfClosed !== true) return refusalAt(drive, scope);
    return drive.cancelled && isExposed(scope) ? cancelledError() : undefined;
  }

  stops(live: LiveOperation<unknown>): boolean {
    const { drive } = this;
    if (live.scope === undefined) return drive.cancelRequested;
    const scope = live.scope as Scope;
    return live.evenIfClosed ? drive.cancelRequested && isExposed(scope) : stopsAt(drive, scope);
  }

  signalOf({ scope }: LiveOperation<unknown>): AbortSignal {
    return (scope as Scope).abortSignal;
  }

  /** Rejects every pending operation of a cancelled run. Bodies that run see their abort signal. */
  cancelWaits(): void {
    const kept = new Set<number>();
    const refused: LiveOperation<unknown>[] = [];
    for (const live of this.#refusable) {
      if (this.#refusalOf(live, live.scope as Scope | undefined) === undefined) kept.add(live.pos);
      else refused.push(live);
    }
    this.drive.waits.clear(({ pos, shielded }) => kept.has(pos) || shielded);
    for (const live of refused) this.#refuse(live, cancelledError());
  }

  #refuse(live: LiveOperation<unknown>, error: TapeError): void {
    this.#refusable.delete(live);
    live.refused = true;
    live.refuse(error);
  }

  /** Pending operations that the end of this scope refuses. */
  pendingIn(scope: Scope): LiveOperation<unknown>[] {
    const isInside = (live: LiveOperation<unknown>): boolean =>
      !live.evenIfClosed && live.scope !== undefined && reaches(scope, live.scope as Scope);
    return [...this.#refusable].filter(isInside);
  }

  /**
   * The scope has ended: rejects what is pending inside. Effects that were sent stay sent: their outcomes are awaited
   * and recorded. `seq`: of the record of the end, in a replay.
   */
  refuseIn(scope: Scope, seq: number | undefined): LiveOperation<unknown>[] {
    const refused = this.pendingIn(scope);
    const isEffect = ({ kind }: LiveOperation<unknown>): boolean => kind === "effect.intended";
    const others = new Set(refused.filter((live) => !isEffect(live)).map(({ pos }) => pos));
    this.drive.waits.clear((wait) => !others.has(wait.pos));
    for (const live of refused) {
      const error = scope.refusal!();
      const sent = seq === undefined ? live.sent : wasSent(this.drive.history.byPos.get(live.pos), seq);
      this.#refuse(live, isEffect(live) ? effectRefusal(error, live, sent) : error);
    }
    return refused;
  }

  /** What was requested here cannot be repeated, so a retry of the run keeps it. */
  keep(pos: number): void {
    this.lanes.at(pos).kinds[pos % laneRoom] = "scope.withdrew";
  }

  /** The operation whose failure ended the workflow, if it was one. */
  failureBehind(error: unknown): FailureBehind {
    return this.#failures.behind(error, this.lanes.all(), (lane) => this.nextIn(lane));
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
    const { scope } = handle as { scope?: object };
    const at: ExecutionSite = { context: this.drive.context, body: handle, ...(scope && { scope }) };
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
    if (opening !== undefined) handle.opening = opening.kind === "gate.opened" ? "gate" : "sleep";
    const wait = (): void => {
      if (handle.refused) return;
      let ended: NewRecord | undefined;
      drive.waits.add({
        pos: handle.pos,
        description: about,
        match: (note) => {
          ended = match(note, opened);
          if (ended !== undefined && ended.kind !== "signal.refused") handle.opening = undefined;
          return ended;
        },
        written: () => resolveWith(() => resultOf(ended!), handle),
        ...(endSleepRecord && {
          endSleep: () => {
            handle.opening = undefined;
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

const anywhere = {};

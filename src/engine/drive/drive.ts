import { errorFields } from "../../base/reason.ts";
import { tameThrown } from "../../base/thrown.ts";
import { releaseJournal } from "../../lease/release-journal.ts";
import { type ErrorCode, isTapeError, TapeError } from "../../model/errors.ts";
import type { NewRecord, TermEnd } from "../../model/records.ts";
import type { EffectRef } from "../../model/rows.ts";
import { withContext } from "../../sdk/current.ts";
import { streamName } from "../../sdk/stream.ts";
import type { OpenStream } from "../../sdk/stream-types.ts";
import type { AnyWorkflow } from "../../sdk/workflow.ts";
import { Context } from "../context/context.ts";
import type { Continuation, DriveEnd, DriveHandle, DriveOptions, RunResult } from "../core/handle.ts";
import { settleMatch } from "../core/report.ts";
import { stuckRecord } from "../core/stuck-records.ts";
import { JournalSize, warnLong } from "../journal/journal-size.ts";
import { JournalWriter } from "../journal/journal-writer.ts";
import { PendingWaits } from "../journal/pending-waits.ts";
import { Reservations } from "../journal/reservations.ts";
import { RunStreams } from "../journal/run-streams.ts";
import type { Spans } from "../journal/spans.ts";
import { awaitedInVain } from "../replay/divergence.ts";
import { admittedHistory, freshHistory } from "../replay/first-history.ts";
import { foldHistory, type History, type Note } from "../replay/history.ts";
import { isProgress } from "../replay/progress.ts";
import { Replay } from "../replay/replay.ts";
import { continueRun } from "./continuing.ts";
import { closeRun, type RunOutcome } from "./ending.ts";
import { type ReadRun, readRun } from "./generation.ts";
import { IdleParking } from "./idle-parking.ts";
import { Inbox } from "./inbox.ts";
import { inputOf } from "./input.ts";
import { Latecomers } from "./latecomers.ts";
import { hasStalledOften, limitRecords, reportStalled, stalledError } from "./limits.ts";
import { assertReadable } from "./readable.ts";
import { defaultReplayTimeoutMs, stallReplay } from "./stalled.ts";
import { isDamaged, stoppedOutcome, stopRun } from "./stop.ts";
import { unstickIfResolved } from "./stuck.ts";
import { spansOf } from "./traced.ts";
import { confirmTrial, passesTrial, refuseTrial } from "./trial.ts";

/** When a run that this process could not drive is claimable again. */
const retryAfterMs = 1_000;
/** The same, where another process is needed. */
const otherWorkerMs = 5_000;
/** Errors after which only an operator can continue the run. */
const stuckCodes: ReadonlySet<ErrorCode> = new Set([
  ...(["TAPE_DIVERGED", "TAPE_INVARIANT", "TAPE_STALLED"] as const),
  ...(["TAPE_KEY_UNKNOWN", "TAPE_PAYLOAD_REFUSED"] as const),
]);
const isStuckError = (error: unknown): error is TapeError => isTapeError(error) && stuckCodes.has(error.code);
/** Errors after which another process may be able to. */
const elsewhereCodes: ReadonlySet<ErrorCode> = new Set(["TAPE_NO_WORKER", "TAPE_RECORD_NEWER", "TAPE_NO_CODEC"]);
/** How long a cancelled workflow may clean up before the run ends without it. */
const cancelGraceMs = 30_000;

/**
 * One term of one run: reads the journal, executes the function against it, extends it, and stops when the run ends,
 * parks, becomes STUCK or is lost. No state outlives the drive: the next one starts from the journal.
 *
 *   reading ──▶ replaying ──▶ live ──▶ ending ──▶ ended | parked | stuck
 *       └────────────┴──────────┴─────────┴─────▶ lost
 */
export class Drive implements DriveHandle {
  readonly options: DriveOptions;
  #abort: AbortController | undefined;
  history!: History;
  journal!: JournalWriter;
  replay!: Replay;
  waits!: PendingWaits;
  reservations!: Reservations;
  context!: Context;
  root = 0;
  spans: Spans | undefined;
  streams: RunStreams | undefined;
  readonly children = new Set<string>();
  activeBodies = 0;
  cancelRequested = false;
  cancelled = false;
  bodyEnded = false;
  #finish!: (end: DriveEnd | "continued") => void;
  #end: DriveEnd | "continued" | undefined;
  #size!: JournalSize;
  #inbox!: Inbox;
  #parking: IdleParking | undefined;
  #notified = false;
  readonly #pendingEffects = new Set<Promise<void>>();
  #late: Latecomers | undefined;
  #cancelCut: (() => void) | undefined;
  #endReplay: (() => void) | undefined;

  constructor(options: DriveOptions) {
    this.options = options;
  }

  /** The end of the run that the store has accepted. */
  settled: RunResult | undefined;

  get abortSignal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController();
      if (this.cancelled || this.finished) this.#abort.abort(this.#abortReason());
    }
    return this.#abort.signal;
  }

  /** Effects are in progress, each within its time-out. */
  get callsEffects(): boolean {
    return this.#pendingEffects.size > 0;
  }

  get finished(): boolean {
    return this.#end !== undefined;
  }

  get acceptsNotes(): boolean {
    return !this.finished && !this.bodyEnded && this.replay?.live === true;
  }

  async run(): Promise<DriveEnd | "continued"> {
    const done = new Promise<DriveEnd | "continued">((resolve) => {
      this.#finish = resolve;
    });
    const { lease } = this.options;
    const unsubscribe = lease.onChange(({ to }) => {
      if (to !== "lost") return;
      if (lease.stalled && !this.finished) reportStalled(this);
      this.finish("lost");
    });
    // Not awaited: once the drive has finished, what it waits for may never happen.
    void this.#begin().catch((error: unknown) => this.fail(error));
    return done.finally(unsubscribe);
  }

  /** A note may have arrived. */
  notify(): void {
    this.#notified = true;
    this.#inbox?.notify();
  }

  /** A wake hint may have been lost; the last renewal has the number of notes. */
  checkNotes(): void {
    this.#inbox?.setKnownCount(this.options.lease.notes);
  }

  /**
   * Fires the timer of the sleep at this position and resumes the run, in one write. False: the run does not sleep
   * here, or the store refuses; then the caller fires the timer, with a note. Never resolves if the drive ends first.
   */
  endSleep(pos: number): Promise<boolean> {
    const wait = this.acceptsNotes && !this.cancelRequested ? this.waits.sleepAt(pos) : undefined;
    if (wait?.endSleep === undefined) return Promise.resolve(false);
    const record = wait.endSleep();
    return new Promise((resolve) => {
      const onWritten = (): void => {
        resolve(true);
        this.waits.remove(wait);
        wait.written();
      };
      this.journal.enqueueExclusive([record], onWritten, () => resolve(false));
    });
  }

  /** Parks even if the timer of a preloaded run is about to fire. */
  parkNow(): void {
    this.#parking?.stopStaying();
    this.parkIfIdle();
  }

  finish(end: DriveEnd | "continued"): void {
    if (!this.#halt(end)) return;
    if (end === "ended") this.#late?.end();
    this.#finish(end);
  }

  fail(error: unknown): void {
    if (this.finished) return;
    const { log, runId } = this.options;
    const stuck = isStuckError(error);
    if (stuck && this.journal?.over !== true) {
      this.bodyEnded = true;
      if (refuseTrial(this, error)) return;
      void this.markStuck(error).catch((failure: unknown) => this.fail(failure));
      return;
    }
    // A store that rejects a record has ended the writer: a run that waited for it would be held without end.
    if ((isDamaged(error) || (stuck && this.activeBodies === 0)) && this.#halt("stuck"))
      return void stopRun(this.options, error, () => this.#finish("stuck"), this.journal?.head);
    log("warn", "run.drive_lost", { run: runId, ...errorFields(error) });
    const gone = isTapeError(error, "TAPE_FENCED") || isTapeError(error, "TAPE_LEASE_LOST");
    const elsewhere = isTapeError(error) && elsewhereCodes.has(error.code);
    if (gone || this.activeBodies > 0)
      this.finish("lost"); // the lease expires, because a body may still call the upstream
    else void this.handOver("released", elsewhere ? otherWorkerMs : retryAfterMs);
  }

  /** Releases the run unfinished; another process may claim it after the delay. */
  async handOver(endReason: TermEnd, delayMs: number): Promise<void> {
    if (!this.#halt("lost")) return;
    const { store, tenant, lease } = this.options;
    // Once the code is live, bodies may have been called whose results no record has.
    const unrecorded = this.replay?.live === true ? { unrecorded: true as const } : {};
    const handoff = { endReason, nextReactor: "recovery", delayMs, ...unrecorded };
    try {
      await this.journal?.whenLanded();
      await releaseJournal(store, tenant, lease, this.journal?.head ?? lease.head, handoff);
    } catch (error) {
      this.options.log("warn", "run.release_failed", { run: this.options.runId, ...errorFields(error) });
    }
    this.#finish("lost");
  }

  async markStuck(
    error: TapeError,
    on: readonly EffectRef[] = [],
    retry: () => Promise<void> = () => this.markStuck(error),
  ): Promise<void> {
    await this.parkWith(() => [stuckRecord(error, on), this.termEnded(["an operator"])], retry, "stuck");
    if (this.#end === "stuck") this.#logStuck(error);
  }

  #logStuck(error: TapeError): void {
    this.options.log("error", "run.stuck", { run: this.options.runId, ...errorFields(error) });
  }

  /** Takes pending notes while the run ends. The end requires it; nothing waits for them any more. */
  takeLateNotes(): Promise<void> {
    return this.#inbox.takeLate();
  }

  tooLate(what: string): Promise<never> {
    if (this.finished && this.#end !== "ended") return new Promise(() => {});
    return this.#latecomers.reject(what, this.context.raced || this.cancelled);
  }

  get #latecomers(): Latecomers {
    this.#late ??= new Latecomers(this.options.runId, this.options.log);
    if (this.#end === "ended") this.#late.end();
    return this.#late;
  }

  termEnded(
    waitingFor: readonly string[],
    next: { readonly nextReactor?: string; readonly delayMs?: number } = {},
  ): NewRecord {
    const term = this.options.lease.stats();
    const data = { notesTaken: this.waits.notesTaken, waitingFor: [...waitingFor], term, ...next };
    return { kind: "term.ended", data: { reason: "released", ...data } };
  }

  track(effect: Promise<void>): void {
    const tracked = effect
      .catch((error: unknown) => this.fail(error))
      .finally(() => void this.#pendingEffects.delete(tracked));
    this.#pendingEffects.add(tracked);
  }

  whenEffectsSettle(): Promise<unknown> {
    return Promise.all(this.#pendingEffects);
  }

  openStream(pos: number): OpenStream {
    return (stream) => {
      const name = streamName("stream()", stream);
      const { fresh } = this.options;
      this.streams ??= new RunStreams({
        ...this.options,
        fresh: fresh !== undefined,
        onLost: (error) => this.fail(error),
      });
      if (this.finished) this.streams.end(this.#abortReason());
      return this.streams.writer(pos, { ...stream, name });
    };
  }

  parkIfIdle(): void {
    this.#parking?.recheck();
  }

  async #begin(): Promise<void> {
    this.options.lease.assert();
    const began = this.options.clock.mono();
    const { store, lease, tenant, runId, fresh, suspicion } = this.options;
    const known = fresh ? freshHistory(fresh) : admittedHistory(this.options);
    const { records, notes, lost }: ReadRun = known ? { records: [], notes: [] } : await readRun(this.options);
    if (this.finished) return;
    this.history = known ?? foldHistory(records, notes);
    const { history } = this;
    this.#setUp(notes);
    if (history.stuck !== undefined && !(await unstickIfResolved(this))) return this.#stayStuck();
    if (this.finished) return;
    if (lost !== undefined) return this.markStuck(lost);
    this.root = lease.term.journal;
    if (history.created.parent !== undefined) this.root = (await store.read.run(tenant, runId))?.root ?? this.root;
    // A suspect may be queued, and replay has its own limit: neither is a stall of the code.
    this.#endReplay = lease.declareWait();
    if (suspicion !== undefined && (await suspicion.check(this))) return;
    if (this.finished) return;
    if (history.decided !== undefined) confirmTrial(this); // no workflow code is called any more
    if (history.decided !== undefined) return closeRun(this);
    this.context = new Context(this);
    this.replay = this.#replayOf(history, began);
    if (this.#size.isFull(history.head))
      return this.#outcome({ cause: "failed", outcome: this.#size.error(), final: true });
    if (history.stoppedEarly !== undefined) return this.#outcome(stoppedOutcome(history));
    assertReadable(runId, history.created, [...records, ...notes]);
    const workflow = this.options.runner.workflows.get(history.created.workflow);
    if (workflow === undefined) {
      throw new TapeError("TAPE_NO_WORKER", `no workflow ${history.created.workflow} here`, { run: runId });
    }
    const unchecked = workflow.schema !== undefined && history.created.checked !== true;
    const input = unchecked ? await inputOf(history, workflow) : { value: history.created.input };
    if (this.finished) return;
    if (history.hasCallbacks) await this.context.callbacks.load();
    if ("fault" in input) return this.#outcome({ cause: "failed", outcome: input.fault, final: true });
    if ((workflow.maxStallMs ?? history.maxStallMs) !== undefined) lease.timeProgress();
    const limits = history.trial === undefined ? limitRecords(history, workflow) : [];
    if (limits.length > 0)
      this.journal.enqueue(
        limits,
        () => {},
        (error) => this.fail(error),
      );
    this.#execute(workflow, input.value);
    this.replay.start();
  }

  /** Creates the parts of the drive that depend on its history. */
  #setUp(notes: readonly Note[]): void {
    const { history } = this;
    const { store, lease, runId, clock, log, preloadMs } = this.options;
    this.spans = spansOf(this.options, history.created.workflow);
    for (const id of history.children) this.children.add(id);
    this.reservations = new Reservations(history.byPos);
    this.waits = new PendingWaits(history, notes, lease.term.journal);
    const warn = (records: number): void => warnLong(log, runId, records, store.limits.journalRecords);
    const at = { head: history.head, begins: history.generation.begins };
    this.#size = new JournalSize(store.limits.journalRecords, at, warn);
    this.journal = new JournalWriter({
      appender: store.fenced,
      fence: lease.fence,
      clock,
      ...at,
      assertHeld: () => lease.assert(),
      onNotes: (count) => {
        this.#inbox.setKnownCount(count);
        this.parkIfIdle();
      },
      onWritten: (written, head) => this.#wrote(written, head),
      onIdle: () => this.parkIfIdle(),
      onLost: (error) => this.fail(error),
    });
    this.#inbox = new Inbox(this, Math.max(lease.notes, notes.at(-1)?.seq ?? 0), this.#notified);
    this.#parking = new IdleParking(this, this.#inbox, (error) => this.#logStuck(error));
    if (preloadMs !== undefined) this.#parking.stayFor(preloadMs);
  }

  #replayOf(history: History, began: number): Replay {
    return new Replay({
      history,
      clock: this.options.clock,
      firstUnrequested: () => this.context.firstUnrequested(),
      onCancel: (at) => this.cancel(at),
      onDiverged: (error) => this.fail(error),
      patienceMs: this.options.patienceMs ?? defaultReplayTimeoutMs,
      onStalled: (record) => {
        this.bodyEnded = true;
        if (refuseTrial(this, awaitedInVain(record, this.options.patienceMs ?? defaultReplayTimeoutMs, 1))) return;
        void stallReplay(this, record).catch((error: unknown) => this.fail(error));
      },
      held: hasStalledOften(history),
      ...(history.trial !== undefined && { mayGoLive: () => this.#passesTrial() }),
      onLive: () => {
        this.#endReplay?.();
        this.options.onReplayed?.((this.options.clock.mono() - began) / 1_000);
        if (hasStalledOften(history)) return this.fail(stalledError(this));
        // Notes that arrived while the journal was read and replayed.
        if (this.#inbox.hasUnread) void this.#inbox.takeNotes();
        this.parkIfIdle();
      },
    });
  }

  #passesTrial(): boolean {
    const passes = passesTrial(this, this.context.firstUnrequested());
    if (!passes) this.bodyEnded = true;
    return passes;
  }

  #execute(workflow: AnyWorkflow, value: unknown): void {
    const input = value as never;
    const call = async (): Promise<void> => {
      try {
        const outcome = await withContext(this.context, () => workflow.run(this.context, input));
        await this.#outcome({ cause: this.cancelled ? "cancelled" : "completed", outcome });
      } catch (thrown) {
        await this.#outcome({ cause: this.cancelled ? "cancelled" : "failed", outcome: tameThrown(thrown) });
      }
    };
    void call().catch((error: unknown) => this.fail(error));
  }

  async #outcome(decided: RunOutcome, close = () => closeRun(this, decided)): Promise<void> {
    if (this.finished || this.bodyEnded) return;
    this.bodyEnded = true;
    if (decided.final !== true) await this.replay.codeEnded();
    // Losers of a race may still be in progress: their outcomes are written before the run's.
    while (!this.finished && (this.#pendingEffects.size > 0 || !this.journal.idle)) {
      await (this.#pendingEffects.size > 0 ? Promise.all(this.#pendingEffects) : this.journal.whenIdle());
    }
    if (this.finished) return;
    const { open, raced } = this.context;
    if (open.length > 0) this.#latecomers.leftOpen(open, raced || decided.cause !== "completed");
    await close().catch((error: unknown) => this.fail(error));
  }

  continueAs(next: Continuation): void {
    this.waits.clear(() => false); // no gate of this generation takes another signal
    void this.#outcome({ cause: "completed", outcome: undefined }, () => continueRun(this, next));
  }
  #wrote(records: readonly NewRecord[], head: number): void {
    // Notes and retried attempts are no progress: a body that hangs must not be kept alive by signals.
    if (isProgress(records[0]!) || records.some(isProgress)) {
      this.options.suspicion?.clear();
      this.options.lease.moved();
    }
    this.#size.note(head);
    for (const record of records) this.reservations.apply(record);
    this.#parking?.stopStaying();
    if (this.#size.isFull(head)) void this.#outcome({ cause: "failed", outcome: this.#size.error(), final: true });
  }

  matchWaits(): void {
    for (const match of this.waits.matches()) {
      this.journal.enqueue(
        [match.record],
        () => settleMatch(this, match),
        (error) => this.fail(error),
      );
    }
    this.parkIfIdle();
  }

  cancel(at = this.options.clock.wall()): void {
    this.cancelRequested = true;
    this.cancelled = true;
    this.#abort?.abort(this.#abortReason());
    this.context.cancelWaits();
    this.context.scopes?.cancelled(this.#abortReason());
    if (this.#cancelCut === undefined) this.#cutLater(at);
  }

  /** Code that awaits something other than an operation does not notice: after this time the run ends without it. */
  #cutLater(cancelledAt: number): void {
    this.#cancelCut = this.options.clock.after(cancelGraceMs, () => {
      if (this.context.scopes?.cleansUp(cancelledAt)) return this.#cutLater(cancelledAt);
      void this.#outcome({ cause: "cancelled", outcome: this.#abortReason(), final: true });
    });
  }

  async parkWith(make: () => NewRecord[], retry: () => Promise<void>, end: DriveEnd = "parked"): Promise<void> {
    try {
      await this.journal.appendExclusive(make());
    } catch (error) {
      if (!isTapeError(error, "TAPE_NOTES_PENDING")) throw error;
      await this.#inbox.takeLate();
      return retry();
    }
    this.finish(end);
    this.options.lease.end("released");
  }

  /** Parks a run that is still STUCK after a note arrived. The note stays in the inbox. */
  #stayStuck(): Promise<void> {
    return this.parkWith(
      () => [this.termEnded(["an operator"])],
      // An operator may resolve the effect before this drive has parked; then the next drive continues.
      async () => (this.waits.resolves(this.history.stuck) ? this.handOver("released", 0) : this.#stayStuck()),
      "stuck",
    );
  }

  #halt(end: DriveEnd | "continued"): boolean {
    if (this.#end !== undefined) return false;
    this.#end = end;
    this.spans?.end({ "tape.drive.end": end });
    this.#parking?.stop();
    this.#cancelCut?.();
    this.replay?.stop();
    this.journal?.stop();
    this.streams?.end(this.#abortReason());
    if (this.#abort?.signal.aborted === false) this.#abort.abort(this.#abortReason());
    this.context?.scopes?.halt(this.#abortReason());
    return true;
  }

  #abortReason(): TapeError {
    if (this.cancelled) return new TapeError("TAPE_CANCELLED", "the run was cancelled");
    return new TapeError("TAPE_LEASE_LOST", "this drive is over");
  }
}

import { backoffMs } from "../../base/backoff.ts";
import { errorFields } from "../../base/reason.ts";
import { tameThrown } from "../../base/thrown.ts";
import { isStepRetried } from "../../model/attempt.ts";
import { TapeError } from "../../model/errors.ts";
import { retryTimer } from "../../model/projection.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { StepContext, StepOptions } from "../../sdk/context.ts";
import { DefiniteFailure, requestedDelayMs } from "../../sdk/outcomes.ts";
import { assertKnownKeys, type CheckedRetry, functionOr, numberOf, retryOf } from "../../sdk/validate.ts";
import { wholeMs } from "../../sdk/workflow.ts";
import type { OperationHandle } from "../core/operation.ts";

import { isThenable, maxErrorChars, toStoredError } from "../replay/stored-value.ts";
import type { Operations, RecordOf } from "./operations.ts";
import { CurrentAttempt, type StepAttempt } from "./step-attempt.ts";

/**
 * Steps and decisions with a retry or a time-out. Each failed attempt but the last is a record, so that the count
 * survives a crash. A step without options does not come here.
 */

export interface StepPolicy extends CheckedRetry {
  readonly when: (error: unknown) => boolean;
  readonly timeoutMs: number | undefined;
}

/** Each attempt is a record, and a journal has a bounded number of them. */
const maxAttempts = 1_000;
/** Longer pauses are durable timers: the run parks, and a crash does not shorten them. */
const maxPauseMs = 2_000;

export function stepPolicyOf(name: string, options: StepOptions): StepPolicy {
  const subject = `step ${name}`;
  assertKnownKeys(subject, options, ["retry", "timeout"]);
  const { retry, timeout } = options;
  const checked = retryOf(subject, retry, 1, ["when"]);
  numberOf(subject, "retry.attempts", checked.attempts, 1, { min: 1, max: maxAttempts });
  functionOr(subject, "retry.when", retry?.when);
  const timeoutMs = timeout === undefined ? undefined : wholeMs(subject, "timeout", timeout);
  return { ...checked, when: retry?.when ?? (() => true), timeoutMs };
}

type RunAttempt<T> = (attempt: StepAttempt<T>) => void;

/** Calls the body of a step or a decision. */
export function attemptBody<T>(
  ops: Operations,
  handle: OperationHandle<T>,
  body: (context: StepContext) => T | Promise<T>,
): RunAttempt<T> {
  return (attempt) => {
    const result = ops.callBody(handle, () => body(attempt.context));
    if (!isThenable(result)) return attempt.returned(result);
    result.then(
      (value) => attempt.returned(value),
      (thrown) => attempt.threw(thrown),
    );
  };
}

/** Runs the attempts of one step in one drive. */
export class StepAttempts<T> {
  readonly #ops: Operations;
  readonly #handle: OperationHandle<T>;
  readonly #policy: StepPolicy;
  readonly #run: RunAttempt<T>;
  readonly #record: RecordOf;
  /** The number of the attempt, over all terms and retries of the run. */
  #attempt: number;
  /** The same since the run was last retried: the policy counts these. */
  #counted: number;
  /** The first attempt of this drive. */
  readonly #first: number;

  constructor(ops: Operations, handle: OperationHandle<T>, policy: StepPolicy, run: RunAttempt<T>, record: RecordOf) {
    this.#ops = ops;
    this.#handle = handle;
    this.#policy = policy;
    this.#run = run;
    this.#record = record;
    const earlier = attemptRecords(ops.drive.history.byPos.get(handle.pos));
    this.#attempt = earlier.length + 1;
    this.#counted = earlier.length - earlier.findLastIndex(({ kind }) => kind !== "step.failed");
    this.#first = this.#attempt;
  }

  start(): void {
    const { drive } = this.#ops;
    const last = attemptRecords(drive.history.byPos.get(this.#handle.pos)).at(-1);
    // After a pause in memory that a crash ended, the next attempt starts at once.
    if (last?.kind === "step.failed" && last.data.timer) this.#awaitTimer(last.data.attempt);
    else {
      drive.activeBodies++;
      this.#try();
    }
  }

  /** One attempt. The caller has counted it among the active bodies. */
  #try(): void {
    const attempt = new CurrentAttempt<T>({
      context: (timeout) => this.#contextOf(timeout),
      returned: (value) => this.#ops.returned(this.#handle, value, this.#record),
      threw: (thrown) => this.#failed(tameThrown(thrown)),
      committed: () => this.#ops.committed(),
      lost: (error) => {
        this.#ops.bodyOver();
        this.#ops.drive.fail(error);
      },
      timedOut: () => this.#timedOut(),
    });
    const { lease, clock } = this.#ops.drive.options;
    attempt.limit(this.#policy.timeoutMs, lease, clock);
    try {
      lease.assert();
      this.#run(attempt);
    } catch (thrown) {
      attempt.threw(thrown);
    }
  }

  #contextOf(timeout: AbortSignal | undefined): StepContext {
    const { drive } = this.#ops;
    const attempt = this.#attempt;
    const ops = this.#ops;
    const repeated = attempt > this.#first;
    const { pos } = this.#handle;
    return {
      get abortSignal() {
        return timeout === undefined ? drive.abortSignal : AbortSignal.any([timeout, drive.abortSignal]);
      },
      attempt,
      get last() {
        return ops.lastNote(repeated);
      },
      get stream() {
        return drive.openStream(pos);
      },
    };
  }

  #timedOut(): TapeError {
    const { name, pos } = this.#handle;
    const { timeoutMs } = this.#policy;
    const message = `attempt ${this.#attempt} of ${name} took longer than ${timeoutMs} ms`;
    return new TapeError("TAPE_TIMEOUT", message, { step: name, pos, attempt: this.#attempt, timeoutMs });
  }

  #failed(error: unknown): void {
    const { drive } = this.#ops;
    if (drive.finished) {
      this.#ops.bodyOver();
      return;
    }
    const { attempts, backoff, when } = this.#policy;
    const final = error instanceof DefiniteFailure || drive.cancelRequested;
    const verdict = { attempt: this.#counted, attempts, final };
    if (!isStepRetried(verdict) || !this.#wanted(when, error)) {
      this.#ops.threw(this.#handle, error, this.#record);
      return;
    }
    drive.streams?.close(this.#handle.pos);
    const nominalMs = backoffMs(this.#counted, backoff, drive.options.random);
    const delayMs = Math.ceil(Math.max(nominalMs, requestedDelayMs(error)));
    const timer = delayMs > maxPauseMs;
    const { pos, name } = this.#handle;
    const stored = toStoredError(error, maxErrorChars);
    const data: RecordData<"step.failed"> = { pos, name, attempt: this.#attempt, error: stored, delayMs };
    const record: NewRecord = { kind: "step.failed", data: timer ? { ...data, timer } : data };
    const written = (): void => {
      const about = { step: name, pos, attempt: this.#attempt, delayMs, ...errorFields(error) };
      drive.options.log("info", "step.retried", { run: drive.options.runId, ...about });
      const failed = this.#attempt++;
      this.#counted++;
      if (!timer) return void this.#pause(delayMs);
      // A cancelled run has rejected the step: a wait would only keep the run from its end.
      if (!drive.finished && !drive.cancelRequested) this.#awaitTimer(failed);
      this.#ops.bodyOver();
    };
    drive.journal.enqueue([record], written, (refusal) => drive.fail(refusal));
  }

  /** An author's `when` that throws wants no retry: the error that it was asked about stays the result. */
  #wanted(when: StepPolicy["when"], error: unknown): boolean {
    try {
      return when(error);
    } catch (thrown) {
      const { log, runId } = this.#ops.drive.options;
      log("warn", "step.when_failed", { run: runId, step: this.#handle.name, ...errorFields(tameThrown(thrown)) });
      return false;
    }
  }

  /** Under the lease, and counted as an active body: a run that parked here would not be woken. */
  async #pause(delayMs: number): Promise<void> {
    const { drive } = this.#ops;
    await drive.options.clock.sleep(delayMs, drive.abortSignal);
    this.#next();
  }

  #next(): void {
    const { drive } = this.#ops;
    // A cancelled run has rejected the step already.
    if (drive.finished || drive.cancelRequested) this.#ops.bodyOver();
    else this.#try();
  }

  #awaitTimer(attempt: number): void {
    const { drive } = this.#ops;
    const { pos, name } = this.#handle;
    const purpose = retryTimer(attempt);
    drive.waits.add({
      pos,
      description: `a retry of step ${name}`,
      match: (note) => {
        if (note.kind !== "timer.fired" || note.data.pos !== pos || note.data.purpose !== purpose) return undefined;
        // No record: until the attempt has one, a later drive finds the note again.
        drive.activeBodies++;
        drive.options.clock.immediate(() => this.#next());
        return "resume";
      },
      written: () => {},
    });
    drive.matchWaits();
  }
}

type AttemptRecord = Extract<JournalRecord, { kind: "step.failed" | "step.done" | "decision.made" }>;

/** The records of attempts at a position, in order. A result that is followed by others was retried with its run. */
function attemptRecords(records: readonly JournalRecord[] = []): readonly AttemptRecord[] {
  return records.filter(
    (record): record is AttemptRecord =>
      record.kind === "step.failed" || record.kind === "step.done" || record.kind === "decision.made",
  );
}

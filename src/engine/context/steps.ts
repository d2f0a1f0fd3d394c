import { backoffMs } from "../../base/backoff.ts";
import { errorFields } from "../../base/reason.ts";
import { tameThrown } from "../../base/thrown.ts";
import { type StepFailure, stepVerdict } from "../../model/attempt.ts";
import { TapeError } from "../../model/errors.ts";
import { retryTimer } from "../../model/projection.ts";
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { StepContext, StepOptions } from "../../sdk/context.ts";
import { DefiniteFailure, requestedDelayMs } from "../../sdk/outcomes.ts";
import { assertKnownKeys, type CheckedRetry, functionOr, numberOf, retryOf } from "../../sdk/validate.ts";
import { wholeMs } from "../../sdk/workflow.ts";
import type { OperationHandle } from "../core/operation.ts";
import { operationName } from "../replay/divergence.ts";
import { isThenable, maxErrorChars, toStoredError } from "../replay/stored-value.ts";
import type { Operations, RecordOf } from "./operations.ts";
import { gaveUpError, hasGivenUp, maxOutageMs, type Outage, outageAfter, outageBackoff, outageText } from "./outage.ts";
import { CurrentAttempt, type StepAttempt } from "./step-attempt.ts";

/**
 * Steps and decisions with a retry or a time-out. Each failed attempt but the last is a record, so that the count
 * survives a crash. A step without options does not come here.
 */

export interface StepPolicy extends CheckedRetry {
  readonly when: (error: unknown) => boolean;
  readonly timeoutMs: number | undefined;
  /** Of an outage; undefined: the error of the last attempt is the result. */
  readonly giveUpAfterMs: number | undefined;
}

/** Each attempt is a record, and a journal has a bounded number of them. */
const maxAttempts = 1_000;
/** Longer pauses are durable timers: the run parks, and a crash does not shorten them. */
const maxPauseMs = 2_000;

export function stepPolicyOf(name: string, options: StepOptions): StepPolicy {
  const subject = `step ${name}`;
  assertKnownKeys(subject, options, ["retry", "timeout"]);
  const { retry, timeout } = options;
  const checked = retryOf(subject, retry, 1, ["when", "giveUpAfter"]);
  numberOf(subject, "retry.attempts", checked.attempts, 1, { min: 1, max: maxAttempts });
  functionOr(subject, "retry.when", retry?.when);
  const timeoutMs = timeout === undefined ? undefined : wholeMs(subject, "timeout", timeout);
  const giveUpAfterMs =
    retry?.giveUpAfter === undefined ? undefined : wholeMs(subject, "retry.giveUpAfter", retry.giveUpAfter);
  numberOf(subject, "retry.giveUpAfter", giveUpAfterMs, 1, { min: 1, max: maxOutageMs });
  return { ...checked, when: retry?.when ?? (() => true), timeoutMs, giveUpAfterMs };
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
  /** The last failed attempt. */
  #last: RecordData<"step.failed"> | undefined;
  #startedAt = 0;

  constructor(ops: Operations, handle: OperationHandle<T>, policy: StepPolicy, run: RunAttempt<T>, record: RecordOf) {
    this.#ops = ops;
    this.#handle = handle;
    this.#policy = policy;
    this.#run = run;
    this.#record = record;
    const earlier = attemptRecords(ops.drive.history.byPos.get(handle.pos));
    this.#attempt = earlier.length + 1;
    this.#counted = earlier.length - earlier.findLastIndex(endsCount);
    this.#first = this.#attempt;
  }

  start(): void {
    const { drive } = this.#ops;
    const last = attemptRecords(drive.history.byPos.get(this.#handle.pos)).at(-1);
    if (last?.kind === "step.failed") this.#last = last.data;
    // After a pause in memory that a crash ended, the next attempt starts at once.
    if (this.#last?.timer) this.#awaitTimer(this.#last);
    else if (this.#last !== undefined && hasGivenUp(last, drive.history.unstuckSeq)) this.#awaitOperator(this.#last);
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
    this.#startedAt = clock.mono();
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
    const handle = this.#handle;
    const { pos } = handle;
    return {
      get abortSignal() {
        return timeout === undefined ? handle.abortSignal : AbortSignal.any([timeout, handle.abortSignal]);
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
    const { attempts, when } = this.#policy;
    const final = error instanceof DefiniteFailure || this.#handle.stopped;
    const outage = this.#outage();
    const verdict = stepVerdict({ attempt: this.#counted, attempts, final, outage });
    if (verdict === "fail" || !this.#wanted(when, error)) {
      this.#ops.threw(this.#handle, error, this.#record);
      return;
    }
    drive.streams?.close(this.#handle.pos);
    const { pos, name } = this.#handle;
    const delayMs = verdict === "give_up" ? 0 : this.#delayMs(error, verdict === "outlast", outage);
    const timer = delayMs > maxPauseMs;
    const failed: RecordData<"step.failed"> = {
      ...{ pos, name, attempt: this.#attempt, error: toStoredError(error, maxErrorChars), delayMs },
      ...(timer && { timer }),
      ...(outage && { outage: { since: outage.since, ms: outage.ms, ...(verdict === "give_up" && { gaveUp: true }) } }),
    };
    const record: NewRecord = { kind: "step.failed", data: failed };
    drive.journal.enqueue(
      [record],
      () => this.#retry(failed, error),
      (refusal) => drive.fail(refusal),
    );
  }

  #outage(): (Outage & NonNullable<StepFailure["outage"]>) | undefined {
    const { giveUpAfterMs } = this.#policy;
    if (giveUpAfterMs === undefined) return undefined;
    const { clock } = this.#ops.drive.options;
    return { ...outageAfter(this.#last, clock.mono() - this.#startedAt, clock.wall()), giveUpAfterMs };
  }

  /** `outlasting`: the attempts are used up. The last attempt of all starts when the outage has lasted too long. */
  #delayMs(error: unknown, outlasting: boolean, outage: StepFailure["outage"]): number {
    const { attempts, backoff } = this.#policy;
    const { random } = this.#ops.drive.options;
    const nominalMs = backoffMs(this.#counted, backoff, random);
    const pauseMs = outlasting ? backoffMs(this.#counted - attempts + 1, outageBackoff, random) : 0;
    const delayMs = Math.ceil(Math.max(nominalMs, pauseMs, requestedDelayMs(error)));
    return outage === undefined ? delayMs : Math.min(delayMs, outage.giveUpAfterMs - outage.ms);
  }

  /** The failed attempt has its record. */
  #retry(failed: RecordData<"step.failed">, error: unknown): void {
    const { drive } = this.#ops;
    const { attempt, delayMs, timer, outage } = failed;
    const about = { step: this.#handle.name, pos: this.#handle.pos, attempt, delayMs, ...errorFields(error) };
    const outlasting = outage !== undefined && this.#counted >= this.#policy.attempts;
    drive.options.log(outlasting ? "warn" : "info", outlasting ? "step.unreachable" : "step.retried", {
      ...{ run: drive.options.runId, ...about },
      ...(outlasting && { since: outage.since }),
    });
    this.#last = failed;
    this.#attempt++;
    this.#counted++;
    if (timer === undefined && outage?.gaveUp === undefined) return void this.#pause(delayMs);
    // A cancelled run has rejected the step: a wait would only keep the run from its end.
    if (!drive.finished && !this.#handle.stopped) {
      if (timer) this.#awaitTimer(failed);
      else this.#awaitOperator(failed);
    }
    this.#ops.bodyOver();
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
    await drive.options.clock.sleep(delayMs, this.#handle.abortSignal);
    this.#next();
  }

  #next(): void {
    const { drive } = this.#ops;
    // A cancelled run has rejected the step already.
    if (drive.finished || this.#handle.stopped) this.#ops.bodyOver();
    else this.#try();
  }

  #awaitTimer({ attempt, outage }: RecordData<"step.failed">): void {
    const { drive } = this.#ops;
    const { pos, name } = this.#handle;
    const purpose = retryTimer(attempt);
    this.#handle.opening = purpose;
    drive.waits.add({
      pos,
      description:
        outage === undefined ? `a retry of step ${name}` : outageText(operationName(this.#handle), outage.since),
      match: (note) => {
        if (note.kind !== "timer.fired" || note.data.pos !== pos || note.data.purpose !== purpose) return undefined;
        this.#handle.opening = undefined;
        // No record: until the attempt has one, a later drive finds the note again.
        drive.activeBodies++;
        drive.options.clock.immediate(() => this.#next());
        return "resume";
      },
      written: () => {},
    });
    drive.matchWaits();
  }

  /** No note ends it: once nothing else runs, the run is STUCK, and the drive after a redrive tries again. */
  #awaitOperator(failed: RecordData<"step.failed">): void {
    const { drive } = this.#ops;
    const { pos } = this.#handle;
    const gaveUp = gaveUpError(failed, this.#handle);
    drive.waits.add({ pos, description: "an operator", match: () => undefined, written: () => {}, gaveUp });
    drive.parkIfIdle();
  }
}

/** The attempts of the policy start again: with a retry of the run, or after an operator has resumed it. */
const endsCount = (record: AttemptRecord): boolean =>
  record.kind !== "step.failed" || record.data.outage?.gaveUp === true;

type AttemptRecord = Extract<JournalRecord, { kind: "step.failed" | "step.done" | "decision.made" }>;

/** The records of attempts at a position, in order. A result that is followed by others was retried with its run. */
function attemptRecords(records: readonly JournalRecord[] = []): readonly AttemptRecord[] {
  return records.filter(
    (record): record is AttemptRecord =>
      record.kind === "step.failed" || record.kind === "step.done" || record.kind === "decision.made",
  );
}

import { backoffMs } from "../../base/backoff.ts";
import { registerErrorClass } from "../../base/codec.ts";
import { tameThrown } from "../../base/thrown.ts";
import { type ClockReading, readClocks } from "../../lease/belief.ts";
import {
  type AttemptHistory,
  type CallResult,
  type FailedResult,
  isInterrupted,
  noAttempts,
  verdictOf,
  verdictOnCrash,
} from "../../model/attempt.ts";
import { type ErrorCode, TapeError } from "../../model/errors.ts";
import type { NewRecord, RecordData } from "../../model/records.ts";
import { runAt } from "../../sdk/current.ts";
import type { EffectCall, EffectContext, EffectDefinition } from "../../sdk/effect.ts";
import { AckLost, NotSent, requestedDelayMs, settlesEarlierAttempts } from "../../sdk/outcomes.ts";
import { asRecorded } from "../core/as-recorded.ts";
import type { DriveHandle } from "../core/handle.ts";
import { reportSettled } from "../core/report.ts";
import type { EffectState } from "../replay/history.ts";
import { asStored, maxErrorChars, toStoredError } from "../replay/stored-value.ts";
import { type ConfirmedResult, deniedCall, failedCallOf, leaveEvidence, resultIn } from "./evidence.ts";
import { awaitOutcome, type EffectOperation, isInline, withdrawPending, writeOutcome } from "./outcome.ts";
import { assertStartWindow, sendWindowMs } from "./send-window.ts";

/**
 * An effect that surely did not happen.
 *
 * @example
 * try {
 *   await pay({ invoice: "7", amount: 120 });
 * } catch (error) {
 *   if (!(error instanceof EffectFailed)) throw error;
 *   tape.log(`not paid: ${error.reason}`);
 * }
 */
export class EffectFailed extends TapeError {
  /** The name of the effect. */
  readonly effect: string;
  /** Why it did not happen, for people. */
  readonly reason: string;

  constructor(effect: string, reason: string, cause: unknown) {
    const message = cause instanceof Error ? cause.message : String(cause ?? reason);
    super("TAPE_EFFECT_FAILED", `${effect} did not happen (${reason}): ${message}`, { effect, reason }, cause);
    this.effect = effect;
    this.reason = reason;
  }
}

registerErrorClass("TapeError", (error) => {
  const { code, effect, reason } = error as { code?: unknown; effect?: unknown; reason?: unknown };
  const whole = code === "TAPE_EFFECT_FAILED" && typeof effect === "string" && typeof reason === "string";
  return whole ? EffectFailed.prototype : undefined;
});

/** How often a drive calls an idempotent effect without a response before the outbox takes it: seconds of back-off. */
const inlineAttempts = 5;

async function resultOf(effect: EffectDefinition, returned: unknown): Promise<CallResult> {
  try {
    return { kind: "returned", value: asStored(await returned) };
  } catch (thrown) {
    return failedCall(effect, tameThrown(thrown));
  }
}

const failedCall = (effect: EffectDefinition, error: unknown): FailedResult => ({
  kind: failedCallOf(error, effect.isDefinite),
  error,
});

/**
 * Starts an effect live. Inline effects take two commits: intent and dispatch before the body runs, the outcome after
 * it. If the effect is in doubt, or dispatched by the outbox, its item journal decides and the run waits for the note.
 */
export function startEffect(drive: DriveHandle, call: EffectCall<unknown>, handle: EffectOperation): void {
  register(drive, call.effect);
  const known = drive.history.effects.get(handle.pos);
  const inline = isInline(call);
  if (known === undefined) {
    recordIntent(drive, call, handle, inline);
    return;
  }
  handle.sent = known.status !== "WITHDRAWN";
  if (!handle.sent) return; // its scope ends in a moment
  if (!inline || known.status === "UNKNOWN" || known.status === "STUCK") {
    awaitOutcome(drive, call, handle);
    return;
  }
  if (known.status === "DISPATCHED") {
    recoverAttempt(drive, call, handle, known);
    return;
  }
  drive.track(retryAttempt(drive, call, handle, known.attempt, known));
}

/**
 * An effect that is missing from the runner works until a response is lost: then no reactor can observe or compensate
 * it. So its first use registers it, and a warning says that the registration does not outlast the process.
 */
function register({ options: { runner, log, runId } }: DriveHandle, definition: EffectDefinition): void {
  if (runner.effects.has(definition.name) || runner.register?.(definition) !== true) return;
  const next = `add it to createRunner({ effects: [...] }): after a restart no process could observe it after a lost response, or compensate it`;
  const code = "TAPE_EFFECT_UNREGISTERED" satisfies ErrorCode;
  log("warn", "effect.unregistered", { run: runId, effect: definition.name, code, next });
}

function recordIntent(drive: DriveHandle, call: EffectCall<unknown>, handle: EffectOperation, inline: boolean): void {
  const { effect, args, hash } = call;
  const { pos } = handle;
  const businessKey = effect.businessKey?.(args);
  const { connector } = effect;
  const data: RecordData<"effect.intended"> = {
    pos,
    name: effect.name,
    semantics: effect.semantics,
    dispatch: inline ? "inline" : "outbox",
    key: idempotencyKeyOf(drive, pos),
    argsHash: hash,
    args,
    ...(businessKey === undefined ? {} : { businessKey }),
    ...(connector === undefined ? {} : { connector }),
    policy: {
      attempts: effect.attempts,
      timeoutMs: effect.timeoutMs,
      settleMs: effect.settleDelayMs,
      backoff: effect.backoff,
    },
  };
  const records: NewRecord[] = [{ kind: "effect.intended", data }];
  if (inline) records.push(dispatched(drive, call, pos, 1));
  const refused = (error: TapeError): void => {
    const stored = asStored(error);
    handle.endWithError(stored, { kind: "effect.received", data: { pos, status: "REFUSED", error: stored } });
  };
  const authorised = readClocks(drive.options.clock);
  const written = (): void => {
    handle.sent = true;
    if (inline) startAttempt(drive, call, handle, 1, noAttempts, authorised);
    else awaitOutcome(drive, call, handle);
  };
  drive.journal.enqueue(records, written, refused);
}

const dispatched = (drive: DriveHandle, call: EffectCall<unknown>, pos: number, attempt: number): NewRecord => ({
  kind: "effect.dispatched",
  data: { pos, attempt, sendWithinMs: sendWindowMs(drive.options.lease, call.effect.timeoutMs) },
});

/** Run id and position: the same in every drive, and different for every decision. */
export const idempotencyKeyOf = (drive: DriveHandle, pos: number): string => `${drive.options.runId}:${pos}`;

function startAttempt(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  attempt: number,
  history: AttemptHistory,
  authorised: ClockReading,
): void {
  drive.activeBodies++;
  const work = runAttempt(drive, call, handle, attempt, history, authorised)
    .catch((error: unknown) => drive.fail(error))
    .finally(() => {
      drive.activeBodies--;
      drive.parkIfIdle();
    });
  drive.track(work);
}

async function runAttempt(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  attempt: number,
  history: AttemptHistory,
  authorised: ClockReading,
): Promise<void> {
  const { effect, args } = call;
  const { lease, runId } = drive.options;
  const timeout = new AbortController();
  const cancelTimer = drive.options.clock.after(effect.timeoutMs, () =>
    timeout.abort(new AckLost("the effect timed out")),
  );
  const endWait = lease.declareWait();
  const fx: EffectContext = {
    runId,
    key: idempotencyKeyOf(drive, handle.pos),
    token: lease.token,
    fence: lease.fence,
    attempt,
    abortSignal: AbortSignal.any([timeout.signal, lease.abortSignal]),
    businessKey: effect.businessKey?.(args),
    stream: drive.openStream(handle.pos),
  };
  let result: CallResult;
  let response: Promise<CallResult> | undefined;
  try {
    assertHeld(lease);
    assertStartWindow(lease, authorised, drive.options.clock);
    const late = new Promise<never>((_, reject) =>
      timeout.signal.addEventListener("abort", () => reject(timeout.signal.reason)),
    );
    const body = runAt({ context: drive.context, body: handle }, () => effect.body!(args, fx));
    response = resultOf(effect, body);
    result = await Promise.race([response, late]);
  } catch (error) {
    result = failedCall(effect, tameThrown(error));
  } finally {
    cancelTimer();
    endWait();
  }
  const evidence = (late: CallResult): Promise<void> => leaveEvidence(drive, call, handle.pos, attempt, late);
  await drive.streams?.settle(handle.pos); // a result implies its chunks
  // Compares the clocks now: after a stall, the timer that ends the drive may not have fired yet.
  if (drive.finished || lease.belief === "lost") return evidence(result);
  // The response may still arrive after the time-out: it is evidence for the process that decides by then.
  if (timeout.signal.aborted && effect.semantics === "non_idempotent") void response?.then(evidence);
  if (result.kind === "returned") {
    const lost = new Promise<true>((resolve) => lease.abortSignal.addEventListener("abort", () => resolve(true)));
    // If this write is fenced, the result is kept as evidence.
    if (await Promise.race([confirm(drive, call, handle, result), lost])) await evidence(result);
  } else await handleFailure(drive, call, handle, attempt, history, result);
}

/** Checked at the point of use: after a stall the abort signal may not have fired yet. */
function assertHeld(lease: DriveHandle["options"]["lease"]): void {
  try {
    lease.assert();
  } catch (cause) {
    throw new NotSent("the lease was lost before the effect was sent", { cause });
  }
}

export function confirm(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  result: ConfirmedResult,
): Promise<void> {
  const { pos } = handle;
  const records = confirmationRecords(drive, call.effect, pos, call.args, result);
  const recorded = <T>(value: T): T => asRecorded(drive, "effect.settled", "value", value);
  const deliver = (): void =>
    "error" in result
      ? handle.reject(result.error)
      : handle.resolve({ status: "confirmed", value: recorded(result.value) });
  return writeOutcome(drive, records, deliver, (refusal) => {
    // It happened, and that must be recorded although its result cannot be. The code gets the error, also on replay.
    const error = asStored(refusal);
    const withError = confirmationRecords(drive, call.effect, pos, call.args, { error });
    return writeOutcome(drive, withError, () => handle.reject(error));
  });
}

/** The effect happened; its obligation is armed in the same transaction. */
export function confirmationRecords(
  drive: DriveHandle,
  effect: EffectDefinition,
  pos: number,
  args: unknown,
  result: ConfirmedResult,
): NewRecord[] {
  const settled: NewRecord = { kind: "effect.settled", data: confirmationOf(pos, result) };
  const { compensate, name } = effect;
  if (compensate === undefined) return [settled];
  const { semantics } = compensate;
  const key = `${idempotencyKeyOf(drive, pos)}:compensation`;
  const value = "error" in result ? undefined : result.value;
  const data = { pos, sub: 1, name, semantics, key, args: { args, result: value } };
  return [settled, { kind: "obligation.armed", data }];
}

function confirmationOf(pos: number, result: ConfirmedResult): RecordData<"effect.settled"> {
  const { to, reason } = verdictOf("error" in result ? "unstorable" : "returned");
  return "error" in result ? { pos, to, reason, error: result.error } : { pos, to, reason, value: result.value };
}

async function handleFailure(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  attempt: number,
  earlier: AttemptHistory,
  { kind, error }: FailedResult,
): Promise<void> {
  const { effect } = call;
  const { pos } = handle;
  const { semantics, attempts } = effect;
  const { to, reason, history } = verdictOf(kind, {
    semantics,
    attempts,
    // A long outage is not waited for under the run's lease: after these attempts the outbox sends the item.
    handOverAfter: inlineAttempts,
    settlesEarlier: settlesEarlierAttempts(error, semantics),
    interrupted: isInterrupted(error),
    history: earlier,
  });
  const stored = asRecorded(drive, "effect.settled", "error", toStoredError(error, maxErrorChars));
  const counted = to === "UNKNOWN" && semantics === "idempotent" ? { failures: history.failures } : {};
  const record: NewRecord = { kind: "effect.settled", data: { pos, to, reason, error: stored, ...counted } };
  await writeOutcome(drive, [record], () => {
    reportSettled(drive.options.log, { run: drive.options.runId, effect: effect.name }, record);
    if (to === "FAILED") handle.resolve({ status: "failed", reason, error: stored });
    if (to === "UNKNOWN") awaitOutcome(drive, call, handle);
  });
  if (to !== "PENDING") return;
  const nominalMs = backoffMs(Math.max(1, history.failures), effect.backoff, drive.options.random);
  const delayMs = Math.max(nominalMs, requestedDelayMs(error));
  handle.withdraw = () => withdrawPending(drive, call, handle, history);
  if (handle.stopped) return handle.withdraw(); // its scope ended during the attempt
  const endWait = drive.options.lease.declareWait();
  await drive.options.clock.sleep(delayMs, handle.abortSignal);
  endWait();
  handle.withdraw = undefined;
  // If the run was cancelled meanwhile, it is not sent again. The decision withdraws it unless it may have happened.
  if (!drive.finished && !handle.stopped) await retryAttempt(drive, call, handle, attempt, history);
}

/** Settles an attempt that the previous term did not finish. */
function recoverAttempt(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  known: EffectState,
): void {
  const { pos } = handle;
  const { attempt } = known;
  const evidence = drive.waits.evidenceFor(pos, known.token);
  if (evidence !== undefined) {
    if (evidence.happened) drive.track(confirm(drive, call, handle, resultIn(evidence)));
    else drive.track(handleFailure(drive, call, handle, attempt, known, deniedCall(evidence.error)));
    return;
  }
  const { to, reason } = verdictOnCrash(call.effect.semantics);
  const record: NewRecord = { kind: "effect.settled", data: { pos, to, reason } };
  const history: AttemptHistory = { failures: known.failures, uncertain: true };
  drive.track(
    writeOutcome(drive, [record], () => {
      reportSettled(drive.options.log, { run: drive.options.runId, effect: call.effect.name }, record);
      if (to === "UNKNOWN") awaitOutcome(drive, call, handle);
      else if (handle.stopped) drive.track(withdrawPending(drive, call, handle, history));
      else drive.track(retryAttempt(drive, call, handle, attempt, history));
    }),
  );
}

function retryAttempt(
  drive: DriveHandle,
  call: EffectCall<unknown>,
  handle: EffectOperation,
  attempt: number,
  history: AttemptHistory,
): Promise<void> {
  const next = attempt + 1;
  const authorised = readClocks(drive.options.clock);
  const begin = (): void => startAttempt(drive, call, handle, next, history, authorised);
  return writeOutcome(drive, [dispatched(drive, call, handle.pos, next)], begin);
}

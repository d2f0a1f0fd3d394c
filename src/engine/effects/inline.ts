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
import type { JournalRecord, NewRecord, RecordData } from "../../model/records.ts";
import type { EffectResult } from "../../sdk/context.ts";
import { runAt } from "../../sdk/current.ts";
import type { EffectCall, EffectContext, EffectDefinition } from "../../sdk/effect.ts";
import { AckLost, NotSent, requestedDelayMs, settlesEarlierAttempts } from "../../sdk/outcomes.ts";
import type { DriveHandle } from "../core/handle.ts";
import type { OperationHandle } from "../core/operation.ts";
import { reportSettled } from "../core/report.ts";
import type { EffectState } from "../replay/history.ts";
import { asStored, maxErrorChars, toStoredError } from "../replay/stored-value.ts";
import { type ConfirmedResult, deniedCall, failedCallOf, leaveEvidence, resultIn } from "./evidence.ts";
import { assertStartWindow, sendWindowMs } from "./send-window.ts";

/** An effect that surely did not happen. */
export class EffectFailed extends TapeError {
  readonly effect: string;
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

/** What a record says an act came to. */
export function effectResultOf<R>(record: JournalRecord | NewRecord): EffectResult<R> {
  const data = record.data as { to?: string; status?: string; reason?: string; value?: unknown; error?: unknown };
  if (data.status === "REFUSED") throw data.error;
  if ((data.to ?? data.status) === "CONFIRMED") {
    if (data.error !== undefined) throw data.error; // it happened, but its result could not be stored
    return { status: "confirmed", value: data.value as R };
  }
  return { status: "failed", reason: data.reason ?? "failed", error: data.error };
}

/** So often a drive calls an idempotent effect that gets no answer, before it hands it over: some seconds of back-off. */
const inlineAttempts = 5;

type EffectOperation = OperationHandle<EffectResult<unknown>>;

async function resultOf(effect: EffectDefinition, answer: unknown): Promise<CallResult> {
  try {
    return { kind: "returned", value: asStored(await answer) };
  } catch (thrown) {
    return failedCall(effect, tameThrown(thrown));
  }
}

const failedCall = (effect: EffectDefinition, error: unknown): FailedResult => ({
  kind: failedCallOf(error, effect.isDefinite),
  error,
});

/**
 * An act, live. Inline: intent and dispatch are durable before the body runs, its outcome after it: two commits. From the
 * moment nobody knows, or if it was the outbox's from the start, its item journal decides and the run waits for the note.
 */
export function startEffect(drive: DriveHandle, act: EffectCall<unknown>, turn: EffectOperation): void {
  register(drive, act.effect);
  const known = drive.history.effects.get(turn.pos);
  const inline = act.effect.dispatch === "inline" && act.effect.body !== undefined;
  if (known === undefined) {
    recordIntent(drive, act, turn, inline);
    return;
  }
  if (!inline || known.status === "UNKNOWN" || known.status === "STUCK") {
    awaitOutcome(drive, act, turn);
    return;
  }
  if (known.status === "DISPATCHED") {
    recoverAttempt(drive, act, turn, known);
    return;
  }
  drive.track(retryAttempt(drive, act, turn, known.attempt, known));
}

/**
 * An effect that was left out of the runner works until its first answer gets lost: then no reactor knows how to look, or
 * what undoes it. So it is registered by its first use, and the author hears that this does not outlast the process.
 */
function register({ options: { runner, log, runId } }: DriveHandle, definition: EffectDefinition): void {
  if (runner.effects.has(definition.name) || runner.register?.(definition) !== true) return;
  const next = `add it to createRunner({ effects: [...] }): after a restart nobody could find out about a lost answer, or undo it`;
  const code = "TAPE_EFFECT_UNREGISTERED" satisfies ErrorCode;
  log("warn", "effect.unregistered", { run: runId, effect: definition.name, code, next });
}

function recordIntent(drive: DriveHandle, act: EffectCall<unknown>, turn: EffectOperation, inline: boolean): void {
  const { effect, args, hash } = act;
  const { pos } = turn;
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
  if (inline) records.push(dispatched(drive, act, pos, 1));
  const refused = (error: TapeError): void => {
    const stored = asStored(error);
    turn.endWithError(stored, { kind: "effect.received", data: { pos, status: "REFUSED", error: stored } });
  };
  const authorised = readClocks(drive.options.clock);
  const written = (): void =>
    inline ? startAttempt(drive, act, turn, 1, noAttempts, authorised) : awaitOutcome(drive, act, turn);
  drive.journal.enqueue(records, written, refused);
}

const dispatched = (drive: DriveHandle, act: EffectCall<unknown>, pos: number, attempt: number): NewRecord => ({
  kind: "effect.dispatched",
  data: { pos, attempt, sendWithinMs: sendWindowMs(drive.options.lease, act.effect.timeoutMs) },
});

/** run id + position: stable over re-drives, and never the same for two decisions. */
export const idempotencyKeyOf = (drive: DriveHandle, pos: number): string => `${drive.options.runId}:${pos}`;

function startAttempt(
  drive: DriveHandle,
  act: EffectCall<unknown>,
  turn: EffectOperation,
  attempt: number,
  history: AttemptHistory,
  authorised: ClockReading,
): void {
  drive.activeBodies++;
  const work = runAttempt(drive, act, turn, attempt, history, authorised)
    .catch((error: unknown) => drive.fail(error))
    .finally(() => {
      drive.activeBodies--;
      drive.parkIfIdle();
    });
  drive.track(work);
}

async function runAttempt(
  drive: DriveHandle,
  act: EffectCall<unknown>,
  turn: EffectOperation,
  attempt: number,
  history: AttemptHistory,
  authorised: ClockReading,
): Promise<void> {
  const { effect, args } = act;
  const { lease, runId } = drive.options;
  const timeout = new AbortController();
  const cancelTimer = drive.options.clock.after(effect.timeoutMs, () =>
    timeout.abort(new AckLost("the time-out was over")),
  );
  const fx: EffectContext = {
    runId,
    key: idempotencyKeyOf(drive, turn.pos),
    token: lease.token,
    fence: lease.fence,
    attempt,
    abortSignal: AbortSignal.any([timeout.signal, lease.abortSignal]),
    businessKey: effect.businessKey?.(args),
  };
  let result: CallResult;
  let answer: Promise<CallResult> | undefined;
  try {
    assertHeld(lease);
    assertStartWindow(lease, authorised, drive.options.clock);
    const late = new Promise<never>((_, reject) =>
      timeout.signal.addEventListener("abort", () => reject(timeout.signal.reason)),
    );
    const body = runAt({ context: drive.context, body: turn }, () => effect.body!(args, fx));
    answer = resultOf(effect, body);
    result = await Promise.race([answer, late]);
  } catch (error) {
    result = failedCall(effect, tameThrown(error));
  } finally {
    cancelTimer();
  }
  const evidence = (known: CallResult): Promise<void> => leaveEvidence(drive, act, turn.pos, attempt, known);
  // Asked now, by the clocks: after a stall no timer has had its turn to tell the drive that it is over.
  if (drive.finished || lease.belief === "lost") return evidence(result);
  // The answer may still come after the time-out: whoever decides by then should hear of it.
  if (timeout.signal.aborted && effect.semantics === "non_idempotent") void answer?.then(evidence);
  if (result.kind === "returned") {
    const lost = new Promise<true>((resolve) => lease.abortSignal.addEventListener("abort", () => resolve(true)));
    // Fenced at this very write: the answer must not get lost with it.
    if (await Promise.race([confirm(drive, act, turn, result), lost])) await evidence(result);
  } else await handleFailure(drive, act, turn, attempt, history, result);
}

/** At the point of use: a signal would still read "not aborted" after a stall. */
function assertHeld(lease: DriveHandle["options"]["lease"]): void {
  try {
    lease.assert();
  } catch (cause) {
    throw new NotSent("the lease was lost before it was sent", { cause });
  }
}

function confirm(
  drive: DriveHandle,
  act: EffectCall<unknown>,
  turn: EffectOperation,
  result: ConfirmedResult,
): Promise<void> {
  const { pos } = turn;
  const records = confirmationRecords(drive, act.effect, pos, act.args, result);
  const tell = (): void =>
    "error" in result ? turn.reject(result.error) : turn.resolve({ status: "confirmed", value: result.value });
  return writeOutcome(drive, records, tell, (refusal) => {
    // It happened, and that must be written; only its result cannot be. The code is told so, live and on replay.
    const error = asStored(refusal);
    const bare = confirmationRecords(drive, act.effect, pos, act.args, { error });
    return writeOutcome(drive, bare, () => turn.reject(error));
  });
}

/** The act happened; what undoes it is armed in the same transaction. */
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
  act: EffectCall<unknown>,
  turn: EffectOperation,
  attempt: number,
  earlier: AttemptHistory,
  { kind, error }: FailedResult,
): Promise<void> {
  const { effect } = act;
  const { pos } = turn;
  const { semantics, attempts } = effect;
  const { to, reason, history } = verdictOf(kind, {
    semantics,
    attempts,
    // A long outage is waited for without a lease: from there on its item is sent again by the outbox.
    handOverAfter: inlineAttempts,
    settlesEarlier: settlesEarlierAttempts(error, semantics),
    interrupted: isInterrupted(error),
    history: earlier,
  });
  const stored = toStoredError(error, maxErrorChars);
  const counted = to === "UNKNOWN" && semantics === "idempotent" ? { failures: history.failures } : {};
  const record: NewRecord = { kind: "effect.settled", data: { pos, to, reason, error: stored, ...counted } };
  await writeOutcome(drive, [record], () => {
    reportSettled(drive.options.log, { run: drive.options.runId, effect: effect.name }, record);
    if (to === "FAILED") turn.resolve({ status: "failed", reason, error: stored });
    if (to === "UNKNOWN") awaitOutcome(drive, act, turn);
  });
  if (to !== "PENDING") return;
  const nominalMs = backoffMs(Math.max(1, history.failures), effect.backoff, drive.options.random);
  const restMs = Math.max(nominalMs, requestedDelayMs(error));
  await drive.options.clock.sleep(restMs, drive.abortSignal);
  // Cancelled meanwhile: it is not sent again. The decision withdraws it, unless an attempt may have happened.
  if (!drive.finished && !drive.cancelRequested) await retryAttempt(drive, act, turn, attempt, history);
}

function writeOutcome(
  drive: DriveHandle,
  records: readonly NewRecord[],
  tell: () => void,
  refused: (error: TapeError) => void | Promise<void> = (error) => drive.fail(error),
): Promise<void> {
  return new Promise((resolve) => {
    drive.journal.enqueue(
      records,
      () => {
        tell();
        resolve();
        drive.parkIfIdle();
      },
      (error) => resolve(refused(error)),
    );
  });
}

/** A successor finds an attempt that nobody finished. */
function recoverAttempt(drive: DriveHandle, act: EffectCall<unknown>, turn: EffectOperation, known: EffectState): void {
  const { pos } = turn;
  const { attempt } = known;
  const evidence = drive.waits.evidenceFor(pos, known.token);
  if (evidence !== undefined) {
    if (evidence.happened) drive.track(confirm(drive, act, turn, resultIn(evidence)));
    else drive.track(handleFailure(drive, act, turn, attempt, known, deniedCall(evidence.error)));
    return;
  }
  const { to, reason } = verdictOnCrash(act.effect.semantics);
  const record: NewRecord = { kind: "effect.settled", data: { pos, to, reason } };
  const history: AttemptHistory = { failures: known.failures, uncertain: true };
  drive.track(
    writeOutcome(drive, [record], () => {
      reportSettled(drive.options.log, { run: drive.options.runId, effect: act.effect.name }, record);
      if (to === "UNKNOWN") awaitOutcome(drive, act, turn);
      else if (!drive.cancelRequested) drive.track(retryAttempt(drive, act, turn, attempt, history));
    }),
  );
}

function retryAttempt(
  drive: DriveHandle,
  act: EffectCall<unknown>,
  turn: EffectOperation,
  attempt: number,
  history: AttemptHistory,
): Promise<void> {
  const next = attempt + 1;
  const authorised = readClocks(drive.options.clock);
  const begin = (): void => startAttempt(drive, act, turn, next, history, authorised);
  return writeOutcome(drive, [dispatched(drive, act, turn.pos, next)], begin);
}

/** The item journal decides; the run parks and is woken by the note. */
function awaitOutcome(drive: DriveHandle, act: EffectCall<unknown>, turn: EffectOperation): void {
  const { pos } = turn;
  let received: NewRecord | undefined;
  drive.waits.add({
    pos,
    description: `effect ${act.effect.name}`,
    effect: act.effect.name,
    match: (note) => {
      if (note.kind !== "effect.outcome" || note.data.pos !== pos || note.data.sub !== 0) return undefined;
      const { status, reason, value, error } = note.data;
      if (status !== "CONFIRMED" && status !== "FAILED") return undefined;
      received = { kind: "effect.received", data: { pos, status, reason, value, error } };
      return received;
    },
    written: () => {
      try {
        turn.resolve(effectResultOf(received!));
      } catch (error) {
        turn.reject(error);
      }
    },
  });
  drive.matchWaits();
}

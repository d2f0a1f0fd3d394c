import { isTapeError } from "./errors.ts";
import type { NewRecord, RecordData } from "./records.ts";

/**
 * The only place that decides what an attempt means for its effect: confirmed, failed, retried or unknown. Engine and
 * items both use it; they differ only in how they write the verdict and in who continues. Pure functions: test/model
 * has the decision table.
 */

export type Semantics = RecordData<"effect.intended">["semantics"];

/** The call returned. `unstorable`: with a value that no record can hold. */
export type CompletedCall = "returned" | "unstorable";
/** `refused`: it did not happen; `not_sent`: nothing was sent; `unknown`: it may have happened. */
export type FailedCall = "refused" | "not_sent" | "unknown";

/** The result of one call of user code. */
export type CallResult = { readonly kind: "returned"; readonly value: unknown } | FailedResult;

export interface FailedResult {
  readonly kind: FailedCall;
  readonly error: unknown;
}

/** A summary of the earlier attempts of the same effect. */
export interface AttemptHistory {
  /** Attempts that count against the retry policy. */
  readonly failures: number;
  /** At least one attempt may have happened. */
  readonly uncertain: boolean;
  /** Attempts that were not sent because the sender lost its lease first. They are not charged, up to a limit. */
  readonly interruptions?: number;
}

/** After this many interruptions the effect itself is the cause, and further ones are charged. */
export const maxInterruptions = 20;

export const noAttempts: AttemptHistory = { failures: 0, uncertain: false };

export interface AttemptFacts {
  readonly semantics: Semantics;
  /** After this many failed attempts the effect is not sent again. */
  readonly attempts: number;
  /**
   * A lower bound for this sender: after that many failures it hands an idempotent effect that may have happened over to
   * another sender (the run's driver to the outbox). Default: `attempts`.
   */
  readonly handOverAfter?: number;
  /** The refusal also covers earlier attempts in doubt. */
  readonly settlesEarlier: boolean;
  /** See {@link isInterrupted}. */
  readonly interrupted: boolean;
  readonly history: AttemptHistory;
}

export interface ConfirmedVerdict {
  readonly to: "CONFIRMED";
  readonly reason: "returned";
}
/** `history` includes this attempt. */
export type FailureVerdict = { readonly history: AttemptHistory } & (
  | { readonly to: "FAILED"; readonly reason: "definite" | "not_sent" | "exhausted" }
  | { readonly to: "PENDING"; readonly reason: "not_sent" | "ack_lost" }
  | { readonly to: "UNKNOWN"; readonly reason: "ack_lost" }
);

const confirmed: ConfirmedVerdict = { to: "CONFIRMED", reason: "returned" };

/**
 * A call that returned has happened, even if its result cannot be stored: the effect is CONFIRMED, its compensation is
 * armed, and it is not sent again.
 */
export function verdictOf(result: CompletedCall): ConfirmedVerdict;
export function verdictOf(result: FailedCall, facts: AttemptFacts): FailureVerdict;
export function verdictOf(result: CompletedCall | FailedCall, facts?: AttemptFacts): ConfirmedVerdict | FailureVerdict {
  if (result === "returned" || result === "unstorable") return confirmed;
  const { semantics, attempts, handOverAfter = attempts, settlesEarlier, interrupted, history: earlier } = facts!;
  // A refusal of this attempt, or proof that it was not sent, says nothing about an earlier uncertain attempt.
  const didNotHappen = result !== "unknown" && !earlier.uncertain;
  // A body that throws the error of another lease has not lost its own: only an unsent attempt can be interrupted.
  const { interruptions = 0 } = earlier;
  const free = interrupted && result === "not_sent" && interruptions < maxInterruptions;
  const failures = earlier.failures + (free ? 0 : 1);
  const uncertain = earlier.uncertain || result === "unknown";
  const history = { failures, uncertain, interruptions: interruptions + (free ? 1 : 0) };
  if (result === "refused" && (settlesEarlier || didNotHappen)) return { to: "FAILED", reason: "definite", history };
  const notSent = result === "not_sent";
  const repeatable = notSent || semantics !== "non_idempotent";
  const maxFailures = semantics === "idempotent" && !didNotHappen ? Math.min(attempts, handOverAfter) : attempts;
  if (repeatable && failures < maxFailures)
    return { to: "PENDING", reason: notSent ? "not_sent" : "ack_lost", history };
  // A read changes nothing, so there is nothing to observe.
  if (didNotHappen || semantics === "read")
    return { to: "FAILED", reason: notSent ? "not_sent" : "exhausted", history };
  return { to: "UNKNOWN", reason: "ack_lost", history };
}

/** A failed attempt of a step or decision, and its policy. */
export interface StepFailure {
  /** The number of the failed attempt. */
  readonly attempt: number;
  readonly attempts: number;
  /** The failure is definite, or the run is cancelled. */
  readonly final: boolean;
  /** How long the step has failed, and how long it may; undefined: it may not outlast its attempts. */
  readonly outage: { readonly ms: number; readonly giveUpAfterMs: number } | undefined;
}

/**
 * What follows a failed attempt of a step or decision. It is local work that may be repeated, so any failure may be
 * retried. `outlast`: the attempts are used up, but the upstream may return. `give_up`: an operator decides.
 */
export function stepVerdict({
  attempt,
  attempts,
  final,
  outage,
}: StepFailure): "retry" | "outlast" | "give_up" | "fail" {
  if (final) return "fail";
  if (outage === undefined) return attempt < attempts ? "retry" : "fail";
  if (outage.ms >= outage.giveUpAfterMs) return "give_up";
  return attempt < attempts ? "retry" : "outlast";
}

export interface CrashVerdict {
  readonly to: "PENDING" | "UNKNOWN";
  readonly reason: "lease_lost";
}
const retried: CrashVerdict = { to: "PENDING", reason: "lease_lost" };
/** Also for an effect that could be sent again when no sender will do so. */
export const unknownAfterCrash: CrashVerdict = { to: "UNKNOWN", reason: "lease_lost" };

/**
 * The verdict on a PENDING effect with an uncertain attempt once the run's outcome is decided. The effect is not
 * withdrawn, because it may have happened, and not sent again before the reconciler has observed it. No attempt ends
 * here, so none is charged.
 */
export const unknownAtEnd = { to: "UNKNOWN", reason: "run_ending" } as const;

/** An effect that was never sent, but was due for so long that others may have done its work. The store knows the reason. */
export const unknownAfterWaiting = { to: "UNKNOWN", reason: "long_pending" } as const;

/**
 * The verdict after the sender crashed during an attempt: the effect may have happened. `poison`: too many senders
 * crashed on it, so it is not sent again even if it is idempotent.
 */
export function verdictOnCrash(semantics: Semantics, poison = false): CrashVerdict {
  return semantics === "non_idempotent" || poison ? unknownAfterCrash : retried;
}

type Settlement = Pick<RecordData<"effect.settled">, "reason" | "error"> & { readonly to: string };

/** Whether the record ends an attempt that failed, as opposed to one in which the sender crashed. */
function endsAttempt({ to, reason }: Settlement): boolean {
  return (to === "PENDING" || to === "UNKNOWN") && (reason === "not_sent" || reason === "ack_lost");
}

/** The history with the attempt that this record ends, if it ends one. */
export function chargeAttempt<H extends AttemptHistory>(history: H, settled: Settlement): H {
  if (!endsAttempt(settled)) return history;
  const { failures, interruptions = 0 } = history;
  const free = settled.reason === "not_sent" && isInterrupted(settled.error) && interruptions < maxInterruptions;
  return free ? { ...history, interruptions: interruptions + 1 } : { ...history, failures: failures + 1 };
}

/** Whether the effect is sent again although an attempt may have happened. */
export const isUncertainRetry = ({ to, reason }: Settlement): boolean =>
  to === "PENDING" && reason !== "not_sent" && reason !== "ABSENT";

/** Whether the effect is sent again because no earlier attempt has happened or can happen any more. */
const isResend = ({ to, reason }: Settlement): boolean => to === "PENDING" && reason === "ABSENT";

export interface AbsenceVerdict {
  readonly to: "PENDING" | "FAILED";
  readonly reason: "ABSENT";
}

/**
 * The verdict on an effect that is proven absent: an observation that started after the send window and the settle
 * delay did not find it, or the upstream guarantees that it will not happen. Sending it again is then a first attempt.
 * `resends`: how often that was done already. Other semantics have used up their attempts by then. A run that is ending
 * starts nothing more.
 */
export function verdictOnAbsence(facts: {
  readonly semantics: Semantics;
  readonly resends: number;
  readonly maxResends: number;
  readonly ending: boolean;
}): AbsenceVerdict {
  const { semantics, resends, maxResends, ending } = facts;
  const again = semantics === "non_idempotent" && !ending && resends < maxResends;
  return { to: again ? "PENDING" : "FAILED", reason: "ABSENT" };
}

/** How often the effect was sent again after a proven absence, since an operator last had it retried. */
export function resendsOf(records: readonly NewRecord[]): number {
  return records.slice(restartOf(records) + 1).filter((r) => r.kind === "effect.settled" && isResend(r.data)).length;
}

/**
 * Counts the attempts in an item's journal. No attempt is charged twice: one whose acknowledgement was lost may be
 * settled again after an observation. An operator's retry restarts the count but keeps `uncertain`; a proven absence
 * restarts both. `handedOver`: there were inline attempts, and the item exists because the last one was in doubt.
 */
export function attemptHistory(records: readonly NewRecord[], handedOver: boolean): AttemptHistory {
  const restartedAt = restartOf(records);
  const [opened] = records;
  const failures = restartedAt < 0 && opened?.kind === "item.opened" ? (opened.data.failures ?? 0) : 0;
  let history: AttemptHistory = { failures, uncertain: handedOver };
  let open = false;
  for (const [k, record] of records.entries()) {
    if (record.kind === "effect.dispatched") open = k > restartedAt;
    if (record.kind !== "effect.settled" && record.kind !== "obligation.settled") continue;
    if (isResend(record.data)) history = noAttempts;
    if (isUncertainRetry(record.data)) history = { ...history, uncertain: true };
    if (!open || !endsAttempt(record.data)) continue;
    open = false;
    history = chargeAttempt(history, record.data);
  }
  return history;
}

/** The index of the operator's last retry; -1: there was none. */
export function restartOf(records: readonly NewRecord[]): number {
  return records.findLastIndex((record) => {
    if (record.kind !== "operator.action" || record.data.action !== "resolve") return false;
    return (record.data.detail as { as?: unknown } | undefined)?.as === "retry";
  });
}

/** The sender lost its lease before it sent anything, so no failed attempt is charged. */
export function isInterrupted(error: unknown): boolean {
  if (isTapeError(error, "TAPE_LEASE_LOST") || isTapeError(error, "TAPE_FENCED")) return true;
  return error instanceof Error && error.name === "NotSent" && error.cause !== undefined && isInterrupted(error.cause);
}

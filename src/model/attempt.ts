import { isTapeError } from "./errors.ts";
import type { NewRecord, RecordData } from "./records.ts";

/**
 * The one rule of what an attempt means for its effect: confirmed, failed, sent again, or unknown. Engine and items decide
 * by it; how a verdict is written, and who continues, is their own. It is pure: test/model has its table.
 */

export type Semantics = RecordData<"effect.intended">["semantics"];

/** The call came back. `unstorable`: with what no record can hold. */
export type CompletedCall = "returned" | "unstorable";
/** `refused`: surely not; `not_sent`: nothing has left; `unknown`: it may have happened. */
export type FailedCall = "refused" | "not_sent" | "unknown";

/** What a call into user code came to. */
export type CallResult = { readonly kind: "returned"; readonly value: unknown } | FailedResult;

export interface FailedResult {
  readonly kind: FailedCall;
  readonly error: unknown;
}

/** What earlier attempts of the same effect have left. */
export interface AttemptHistory {
  /** Those that count against the policy. */
  readonly failures: number;
  /** One of them may have happened. */
  readonly uncertain: boolean;
}

export const noAttempts: AttemptHistory = { failures: 0, uncertain: false };

export interface AttemptFacts {
  readonly semantics: Semantics;
  /** Failed attempts after which the effect is not sent again. */
  readonly attempts: number;
  /** The same for this sender alone, where another one goes on with an idempotent effect that may have happened. */
  readonly handOverAfter?: number;
  /** A refusal that also speaks for earlier attempts in doubt. */
  readonly settlesEarlier: boolean;
  /** See {@link isInterrupted}. */
  readonly interrupted: boolean;
  readonly history: AttemptHistory;
}

export interface Confirmed {
  readonly to: "CONFIRMED";
  readonly reason: "returned";
}
/** `history`: this attempt included. */
export type FailureVerdict = { readonly history: AttemptHistory } & (
  | { readonly to: "FAILED"; readonly reason: "definite" | "not_sent" | "exhausted" }
  | { readonly to: "PENDING"; readonly reason: "not_sent" | "ack_lost" }
  | { readonly to: "UNKNOWN"; readonly reason: "ack_lost" }
);

const confirmed: Confirmed = { to: "CONFIRMED", reason: "returned" };

/** What returned has happened, also where its result cannot be stored: it is confirmed, owed, and not sent again. */
export function verdictOf(result: CompletedCall): Confirmed;
export function verdictOf(result: FailedCall, facts: AttemptFacts): FailureVerdict;
export function verdictOf(result: CompletedCall | FailedCall, facts?: AttemptFacts): Confirmed | FailureVerdict {
  if (result === "returned" || result === "unstorable") return confirmed;
  const { semantics, attempts, handOverAfter = attempts, settlesEarlier, interrupted, history: earlier } = facts!;
  // A refusal of this attempt alone, or that it was not sent, says nothing about an earlier one in doubt.
  const surelyNot = result !== "unknown" && !earlier.uncertain;
  const failures = earlier.failures + (interrupted ? 0 : 1);
  const uncertain = earlier.uncertain || result === "unknown";
  const history = { failures, uncertain };
  if (result === "refused" && (settlesEarlier || surelyNot)) return { to: "FAILED", reason: "definite", history };
  const notSent = result === "not_sent";
  const repeatable = notSent || semantics !== "non_idempotent";
  const most = semantics === "idempotent" && !surelyNot ? Math.min(attempts, handOverAfter) : attempts;
  if (repeatable && failures < most) return { to: "PENDING", reason: notSent ? "not_sent" : "ack_lost", history };
  // A read changes nothing: there is nothing to find out.
  if (surelyNot || semantics === "read") return { to: "FAILED", reason: notSent ? "not_sent" : "exhausted", history };
  return { to: "UNKNOWN", reason: "ack_lost", history };
}

export interface CrashVerdict {
  readonly to: "PENDING" | "UNKNOWN";
  readonly reason: "lease_lost";
}
const sentAgain: CrashVerdict = { to: "PENDING", reason: "lease_lost" };
/** Also of what could be sent again, where nobody will. */
export const unknownAfterCrash: CrashVerdict = { to: "UNKNOWN", reason: "lease_lost" };

/**
 * Of a PENDING effect with an uncertain attempt, once the run's outcome is decided. It is neither withdrawn, because it may
 * have happened, nor sent again before the reconciler has tried to find out. No attempt ends here: none is charged.
 */
export const unknownAtEnd = { to: "UNKNOWN", reason: "run_ending" } as const;

/**
 * The sender vanished in the middle of an attempt: whether it acted, nobody knows. `poison`: so many senders have that the
 * effect is not sent again, although it may be repeated.
 */
export function verdictOnCrash(semantics: Semantics, poison = false): CrashVerdict {
  return semantics === "non_idempotent" || poison ? unknownAfterCrash : sentAgain;
}

type Settlement = Pick<RecordData<"effect.settled">, "reason" | "error"> & { readonly to: string };

/** The record says that an attempt has failed, not that it was cut short by a crash or a drain. */
export function isFailedAttempt({ to, reason, error }: Settlement): boolean {
  if (to !== "PENDING" && to !== "UNKNOWN") return false;
  return (reason === "not_sent" || reason === "ack_lost") && !isInterrupted(error);
}

/** The effect is sent again although an attempt may have happened. */
export const leavesDoubt = ({ to, reason }: Settlement): boolean => to === "PENDING" && reason !== "not_sent";

/**
 * What an item's journal says of its attempts. No attempt is charged twice: one whose answer was lost may be settled again
 * when somebody has looked. An operator who has it sent again restarts the count; the doubt stays. `handedOver`: inline
 * attempts came before, and it is here because nobody knew.
 */
export function attemptHistory(records: readonly NewRecord[], handedOver: boolean): AttemptHistory {
  const restarted = restartOf(records);
  const [opened] = records;
  let failures = restarted < 0 && opened?.kind === "item.opened" ? (opened.data.failures ?? 0) : 0;
  let uncertain = handedOver;
  let open = false;
  for (const [k, record] of records.entries()) {
    if (record.kind === "effect.dispatched") open = k > restarted;
    if (record.kind !== "effect.settled" && record.kind !== "obligation.settled") continue;
    uncertain ||= leavesDoubt(record.data);
    if (!open || !isFailedAttempt(record.data)) continue;
    open = false;
    failures++;
  }
  return { failures, uncertain };
}

/** Where an operator last had it sent again; -1: never. */
export function restartOf(records: readonly NewRecord[]): number {
  return records.findLastIndex((record) => {
    if (record.kind !== "operator.action" || record.data.action !== "resolve") return false;
    return (record.data.detail as { as?: unknown } | undefined)?.as === "retry";
  });
}

/** The sender lost its lease before it sent: nothing failed, so nothing is charged as a failed attempt. */
export function isInterrupted(error: unknown): boolean {
  if (isTapeError(error, "TAPE_LEASE_LOST") || isTapeError(error, "TAPE_FENCED")) return true;
  return error instanceof Error && error.name === "NotSent" && error.cause !== undefined && isInterrupted(error.cause);
}

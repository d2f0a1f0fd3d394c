import { backoffMs } from "../../base/backoff.ts";
import { readClocks } from "../../lease/belief.ts";
import { isInterrupted } from "../../model/attempt.ts";
import type { JournalRecord, NewRecord } from "../../model/records.ts";
import type { EffectContext, EffectDefinition } from "../../sdk/effect.ts";
import { requestedDelayMs, settlesEarlierAttempts } from "../../sdk/outcomes.ts";
import { isUnstorable, resultIn } from "../effects/evidence.ts";
import { sendWindowMs } from "../effects/send-window.ts";
import { failedAttempts } from "./attempts.ts";
import { type CallResult, callWithDeadline, leaveEvidenceOf, toStorableError } from "./call.ts";
import type { ReactorDeps } from "./deps.ts";
import type { Item } from "./item.ts";

/**
 * One attempt of an act or of an inverse, under its item's lease: authorised by a durable record, carried out, and its
 * outcome written with the end of the term. `before` is written together with the authorisation.
 */
export async function runAttempt(
  deps: ReactorDeps,
  item: Item,
  definition: EffectDefinition,
  call: (fx: EffectContext) => unknown,
  before: readonly NewRecord[] = [],
): Promise<void> {
  const { effect, ref } = item;
  const attempt = effect.attempt + 1;
  const happened = item.evidence.findLast((said) => said.happened);
  if (happened !== undefined) {
    // A late owner says that it is done. Only an authorised attempt can be confirmed: this one sends nothing.
    const authorised: NewRecord = { kind: "effect.dispatched", data: { ...ref, attempt, sendWithinMs: 0 } };
    return item.finish([...before, authorised, ...item.confirmed("evidence", resultIn(happened))]);
  }
  const sendWithinMs = sendWindowMs(item.lease, definition.timeoutMs);
  const authorised = readClocks(deps.clock);
  await item.write([...before, { kind: "effect.dispatched", data: { ...ref, attempt, sendWithinMs } }]);
  const carried = await callWithDeadline(item, deps, { ...definition, authorised }, (signal) =>
    call(item.context(attempt, signal)),
  );
  try {
    await conclude(deps, item, definition, carried);
  } catch (error) {
    // Nobody but us knows what came of it: whoever decides now hears it from the inbox.
    await leaveEvidenceOf(item, carried);
    throw error;
  }
}

async function conclude(
  deps: ReactorDeps,
  item: Item,
  definition: EffectDefinition,
  carried: CallResult,
): Promise<void> {
  const { semantics } = item.effect;
  const reconciler = { nextReactor: "reconciler" };
  if (carried.came === "done") {
    try {
      return await item.finish(item.confirmed("returned", { value: carried.value }));
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      // It happened, and that is written; only its result cannot be. The run is told so, and nothing is sent again.
      return item.finish(item.confirmed("returned", { error: toStorableError(error) }));
    }
  }
  const { came } = carried;
  const error = toStorableError(carried.error);
  // A refusal of this attempt alone says nothing about an earlier one in doubt.
  const refused =
    came === "refused" && (settlesEarlierAttempts(carried.error, semantics) || !hasUncertainAttempt(item));
  if (refused) return item.finish([item.settled({ to: "FAILED", reason: "definite", error })]);
  const notSent = came === "not_sent";
  const failures = failedAttempts(item) + (isInterrupted(carried.error) ? 0 : 1);
  if ((notSent || semantics !== "non_idempotent") && failures < definition.attempts) {
    const again = item.settled({ to: "PENDING", reason: notSent ? "not_sent" : "ack_lost", error });
    const inMs = Math.ceil(
      Math.max(backoffMs(Math.max(1, failures), definition.backoff, deps.random), requestedDelayMs(carried.error)),
    );
    return item.finish([again], { nextReactor: item.actor, inMs });
  }
  // That this attempt was not sent says nothing about an earlier one in doubt.
  const surely = semantics === "read" || (notSent && !hasUncertainAttempt(item));
  if (!surely) return item.finish([item.settled({ to: "UNKNOWN", reason: "ack_lost", error })], reconciler);
  return item.finish([item.settled({ to: "FAILED", reason: notSent ? "not_sent" : "exhausted", error })]);
}

/** Why each attempt that was put back to be made again had failed. */
function retriedAttempts(records: readonly JournalRecord[]): { readonly reason: string; readonly error?: unknown }[] {
  return records.flatMap((record) => {
    const settled = record.kind === "effect.settled" || record.kind === "obligation.settled";
    return settled && record.data.to === "PENDING" ? [record.data] : [];
  });
}

/** Whether an earlier attempt may have happened. One that was inline before has come here because nobody knew. */
function hasUncertainAttempt(item: Item): boolean {
  return item.effect.dispatch === "inline" || retriedAttempts(item.records).some(({ reason }) => reason !== "not_sent");
}

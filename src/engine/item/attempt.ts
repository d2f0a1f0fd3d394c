import { backoffMs } from "../../base/backoff.ts";
import { readClocks } from "../../lease/belief.ts";
import { type CallResult, isInterrupted, verdictOf } from "../../model/attempt.ts";
import type { NewRecord } from "../../model/records.ts";
import type { EffectContext, EffectDefinition } from "../../sdk/effect.ts";
import { requestedDelayMs, settlesEarlierAttempts } from "../../sdk/outcomes.ts";
import { type ConfirmedResult, isUnstorable, resultIn } from "../effects/evidence.ts";
import { sendWindowMs } from "../effects/send-window.ts";
import { maxErrorChars, toStoredError } from "../replay/stored-value.ts";
import { callWithDeadline, leaveEvidenceOf } from "./call.ts";
import type { ReactorDeps } from "./deps.ts";
import type { Item } from "./item.ts";

/**
 * One attempt of an effect or a compensation, under its item's lease. A durable record authorises it, and its outcome
 * is written with the end of the term. `before` is written together with the authorisation.
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
  const happened = item.evidence.findLast((evidence) => evidence.happened);
  if (happened !== undefined) {
    // A late owner confirms it. Only an authorised attempt can be confirmed: this one is authorised but sends nothing.
    const authorised: NewRecord = { kind: "effect.dispatched", data: { ...ref, attempt, sendWithinMs: 0 } };
    return item.finish([...before, authorised, ...item.confirmed("evidence", resultIn(happened))]);
  }
  const sendWithinMs = sendWindowMs(item.lease, definition.timeoutMs);
  const authorised = readClocks(deps.clock);
  await item.write([...before, { kind: "effect.dispatched", data: { ...ref, attempt, sendWithinMs } }]);
  const result = await callWithDeadline(item, deps, { ...definition, authorised }, (signal) =>
    call(item.context(attempt, signal)),
  );
  try {
    await conclude(deps, item, definition, result, before);
  } catch (error) {
    // Only this process has the result: it leaves it in the inbox for the process that decides now.
    await leaveEvidenceOf(item, result);
    throw error;
  }
}

async function conclude(
  deps: ReactorDeps,
  item: Item,
  definition: EffectDefinition,
  result: CallResult,
  before: readonly NewRecord[],
): Promise<void> {
  if (result.kind === "returned") {
    try {
      return await confirm(item, verdictOf("returned").reason, { value: result.value });
    } catch (error) {
      if (!isUnstorable(error)) throw error;
      return confirm(item, verdictOf("unstorable").reason, { error: toStoredError(error, maxErrorChars) });
    }
  }
  const { semantics } = item.effect;
  const { attempts, backoff } = definition;
  const settlesEarlier = settlesEarlierAttempts(result.error, semantics);
  const interrupted = isInterrupted(result.error);
  const facts = { semantics, attempts, settlesEarlier, interrupted, history: item.history(before) };
  const { to, reason, history } = verdictOf(result.kind, facts);
  const settled = item.settled({ to, reason, error: toStoredError(result.error, maxErrorChars) });
  if (to === "FAILED") return item.finish([settled]);
  if (to === "UNKNOWN") return item.finish([settled], { nextReactor: "reconciler" });
  const nominalMs = backoffMs(Math.max(1, history.failures), backoff, deps.random);
  const delayMs = Math.ceil(Math.max(nominalMs, requestedDelayMs(result.error)));
  return item.finish([settled], { nextReactor: item.actor, delayMs });
}

/** If an earlier attempt was taken for absent and has happened after all, the reconciler compensates it. */
function confirm(item: Item, reason: string, result: ConfirmedResult): Promise<void> {
  const surplus = item.evidence.some(({ happened }) => happened);
  return item.finish(item.confirmed(reason, result), surplus ? { nextReactor: "reconciler" } : {}, () =>
    confirm(item, reason, result),
  );
}

import { aborted } from "../../base/abort.ts";
import { tameThrown } from "../../base/thrown.ts";
import type { ClockReading } from "../../lease/belief.ts";
import type { CallResult } from "../../model/attempt.ts";
import type { EffectDefinition } from "../../sdk/effect.ts";
import { AckLost } from "../../sdk/outcomes.ts";
import { failedCallOf } from "../effects/evidence.ts";
import { assertStartWindow } from "../effects/send-window.ts";
import { maxErrorChars, toStoredError } from "../replay/stored-value.ts";
import type { ReactorDeps } from "./deps.ts";
import type { Item } from "./item.ts";

/**
 * Calls the effect's code with a deadline, under the item's lease. Losing the lease aborts the call's signal but does
 * not end the wait: a response after the loss or after the deadline is evidence.
 */
export async function callWithDeadline(
  item: Item,
  deps: ReactorDeps,
  limits: {
    readonly timeoutMs: number;
    readonly isDefinite: EffectDefinition["isDefinite"];
    readonly authorised: ClockReading;
  },
  call: (signal: AbortSignal) => unknown,
): Promise<CallResult> {
  const { lease } = item;
  try {
    lease.assert(); // at the point of use: after a stall the abort signal may not have fired yet
  } catch (error) {
    await item.leaveEvidence({ happened: false, error: toStoredError(error, maxErrorChars) });
    throw error;
  }
  try {
    assertStartWindow(lease, limits.authorised, deps.clock);
  } catch (error) {
    return { kind: "not_sent", error };
  }
  const timeout = new AbortController();
  const cancel = deps.clock.after(limits.timeoutMs, () => timeout.abort(new AckLost("the effect timed out")));
  const endWait = lease.declareWait();
  const response = resultOf(() => call(AbortSignal.any([timeout.signal, lease.abortSignal])), limits.isDefinite);
  const result = await Promise.race([response, aborted(timeout.signal)]);
  cancel();
  endWait();
  if (result !== undefined) return result;
  void response.then((late) => leaveEvidenceOf(item, late));
  return { kind: "unknown", error: timeout.signal.reason };
}

/** Observes the upstream. That changes nothing, so it may be abandoned at any moment. */
export async function observeWithTimeout(
  item: Item,
  deps: ReactorDeps,
  timeoutMs: number,
  call: (signal: AbortSignal) => unknown,
): Promise<CallResult> {
  const timeout = new AbortController();
  const cancel = deps.clock.after(timeoutMs, () => timeout.abort(new AckLost("the observation timed out")));
  const signal = AbortSignal.any([timeout.signal, item.lease.abortSignal]);
  const endWait = item.lease.declareWait();
  const observed = await Promise.race([
    resultOf(
      () => call(signal),
      () => false,
    ),
    aborted(signal),
  ]);
  cancel();
  endWait();
  return observed ?? { kind: "unknown", error: signal.reason };
}

/** Leaves the result of an attempt whose outcome this process could not write. */
export async function leaveEvidenceOf(item: Item, result: CallResult): Promise<void> {
  if (result.kind === "unknown") return; // no evidence either way
  await item.leaveEvidence(
    result.kind === "returned"
      ? { happened: true, value: result.value }
      : { happened: false, error: toStoredError(result.error, maxErrorChars) },
  );
}

async function resultOf(call: () => unknown, isDefinite: EffectDefinition["isDefinite"]): Promise<CallResult> {
  try {
    return { kind: "returned", value: await call() };
  } catch (thrown) {
    const error = tameThrown(thrown);
    return { kind: failedCallOf(error, isDefinite), error };
  }
}

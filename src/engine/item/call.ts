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
 * Calls into the user's code with a deadline, under the item's lease. The loss of the lease aborts the call's signal but
 * does not end the wait: an answer that comes after it is evidence, and so is one that comes after the deadline.
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
    lease.assert(); // at the point of use: a signal would still read "not aborted" after a stall
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
  const cancel = deps.clock.after(limits.timeoutMs, () => timeout.abort(new AckLost("the time-out was over")));
  const answer = resultOf(() => call(AbortSignal.any([timeout.signal, lease.abortSignal])), limits.isDefinite);
  const carried = await Promise.race([answer, aborted(timeout.signal)]);
  cancel();
  if (carried !== undefined) return carried;
  void answer.then((late) => leaveEvidenceOf(item, late));
  return { kind: "unknown", error: timeout.signal.reason };
}

/** A look at the world: it changes nothing, so it may be dropped at any moment. */
export async function observeWithTimeout(
  item: Item,
  deps: ReactorDeps,
  timeoutMs: number,
  call: (signal: AbortSignal) => unknown,
): Promise<CallResult> {
  const timeout = new AbortController();
  const cancel = deps.clock.after(timeoutMs, () => timeout.abort(new AckLost("the look took too long")));
  const signal = AbortSignal.any([timeout.signal, item.lease.abortSignal]);
  const seen = await Promise.race([
    resultOf(
      () => call(signal),
      () => false,
    ),
    aborted(signal),
  ]);
  cancel();
  return seen ?? { kind: "unknown", error: signal.reason };
}

/** What is known of an attempt whose outcome could not be written by the one who made it. */
export async function leaveEvidenceOf(item: Item, carried: CallResult): Promise<void> {
  if (carried.kind === "unknown") return; // it does not know either
  await item.leaveEvidence(
    carried.kind === "returned"
      ? { happened: true, value: carried.value }
      : { happened: false, error: toStoredError(carried.error, maxErrorChars) },
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

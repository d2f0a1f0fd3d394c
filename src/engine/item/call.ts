import { encode } from "../../base/codec.ts";
import { describeThrown, tameThrown } from "../../base/thrown.ts";
import type { ClockReading } from "../../lease/belief.ts";
import { AckLost, DefiniteFailure, NotSent } from "../../sdk/outcomes.ts";
import { assertStartWindow } from "../effects/send-window.ts";
import type { ReactorDeps } from "./deps.ts";
import type { Item } from "./item.ts";

/** What came of a call: done, surely not, not even sent, or nobody knows. */
export type CallResult =
  | { readonly came: "done"; readonly value: unknown }
  | { readonly came: "refused" | "not_sent" | "doubt"; readonly error: unknown };

/**
 * Calls into the user's code with a deadline, under the item's lease. The loss of the lease aborts the call's signal but
 * does not end the wait: an answer that comes after it is evidence, and so is one that comes after the deadline.
 */
export async function callWithDeadline(
  item: Item,
  deps: ReactorDeps,
  limits: {
    readonly timeoutMs: number;
    readonly isDefinite: (error: unknown) => boolean;
    readonly authorised: ClockReading;
  },
  call: (signal: AbortSignal) => unknown,
): Promise<CallResult> {
  const { lease } = item;
  try {
    lease.assert(); // at the point of use: a signal would still read "not aborted" after a stall
  } catch (error) {
    await item.leaveEvidence({ happened: false, error: toStorableError(error) });
    throw error;
  }
  try {
    assertStartWindow(lease, limits.authorised, deps.clock);
  } catch (error) {
    return { came: "not_sent", error };
  }
  const timeout = new AbortController();
  const cancel = deps.clock.after(limits.timeoutMs, () => timeout.abort(new AckLost("the time-out was over")));
  const answer = resultOf(() => call(AbortSignal.any([timeout.signal, lease.abortSignal])), limits.isDefinite);
  const carried = await Promise.race([answer, aborted(timeout.signal)]);
  cancel();
  if (carried !== undefined) return carried;
  void answer.then((late) => leaveEvidenceOf(item, late));
  return { came: "doubt", error: timeout.signal.reason };
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
  return seen ?? { came: "doubt", error: signal.reason };
}

/** What is known of an attempt whose outcome could not be written by the one who made it. */
export async function leaveEvidenceOf(item: Item, carried: CallResult): Promise<void> {
  if (carried.came === "doubt") return; // it does not know either
  const { came } = carried;
  await item.leaveEvidence(
    came === "done"
      ? { happened: true, value: carried.value }
      : { happened: false, error: toStorableError(carried.error) },
  );
}

async function resultOf(call: () => unknown, definite: (error: unknown) => boolean): Promise<CallResult> {
  try {
    return { came: "done", value: await call() };
  } catch (thrown) {
    const error = tameThrown(thrown);
    if (error instanceof NotSent) return { came: "not_sent", error };
    const refused = error instanceof DefiniteFailure || isDefiniteSafely(definite, error);
    return { came: refused ? "refused" : "doubt", error };
  }
}

/** The author's own judgement; one that throws has not said that nothing happened. */
function isDefiniteSafely(definite: (error: unknown) => boolean, error: unknown): boolean {
  try {
    return definite(error);
  } catch {
    return false;
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/** Longer than any message for people; a stack of a deep call still fits. */
const maxErrorChars = 16_384;

/** An error as the journal takes it: one that cannot be encoded, or is too long, must not keep an outcome from being told. */
export function toStorableError(error: unknown): unknown {
  try {
    if (encode(error).length <= maxErrorChars) return error;
  } catch {
    // said below
  }
  return new Error(describeThrown(error).slice(0, 1_000).toWellFormed());
}

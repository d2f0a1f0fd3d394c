import { registerErrorClass } from "../base/codec.ts";
import { durationMs } from "../base/duration.ts";

/**
 * What a body may throw to say how sure it is. Anything else leaves doubt: the act may have happened.
 */

/** Nothing was sent: the request never left, so trying again is safe whatever the semantics. */
export class NotSent extends Error {
  /** The other side asked to be left alone for so long; the next try is not made before. */
  declare readonly retryAfterMs?: number;

  constructor(
    message = "nothing was sent",
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = "NotSent";
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

/** How long the upstream asked to be left alone. What is no time counts for nothing: a pause of NaN would never rest. */
export function requestedDelayMs(error: unknown): number {
  const afterMs = error instanceof NotSent ? error.retryAfterMs : undefined;
  return typeof afterMs === "number" ? (durationMs(afterMs) ?? 0) : 0;
}

/** Sent, but the answer got lost: nobody knows. What every unexplained error of a body is taken for. */
export class AckLost extends Error {
  constructor(message = "the answer was lost", options?: ErrorOptions) {
    super(message, options);
    this.name = "AckLost";
  }
}

/** The other side said no, for good: it did not happen and will not. */
export class DefiniteFailure extends Error {
  /**
   * Absent: the act did not happen. `attempt`: only this attempt surely did nothing; an earlier one that got no answer is
   * still in doubt. `key`: the other side has looked at what was asked for, so where it dedupes, no earlier attempt of the
   * same key happened either, or it would have answered as it did then.
   */
  declare readonly scope?: "attempt" | "key";

  constructor(message: string, options: ErrorOptions & { readonly scope?: "attempt" | "key" } = {}) {
    super(message, options);
    this.name = "DefiniteFailure";
    if (options.scope !== undefined) this.scope = options.scope;
  }
}

// What a body threw looks the same from the journal: a test for the class must not depend on who asks when.
for (const kind of [NotSent, AckLost, DefiniteFailure]) registerErrorClass(kind.name, () => kind.prototype);

/** Whether a refusal settles the act although an earlier attempt is in doubt. */
export function settlesEarlierAttempts(refusal: unknown, semantics: "idempotent" | "non_idempotent" | "read"): boolean {
  if (!(refusal instanceof DefiniteFailure) || refusal.scope === undefined || semantics === "read") return true;
  return refusal.scope === "key" && semantics === "idempotent";
}

/** What a look at the world found. */
export type Observation<R = unknown> =
  | { readonly observed: "confirmed"; readonly value: R }
  /** `final`: the other side will refuse this key from now on, so it can never happen. */
  | { readonly observed: "absent"; readonly final: boolean }
  /** It happened more than once; `refs` name the surplus acts, which must be undone. */
  | { readonly observed: "duplicate"; readonly value: R; readonly refs: readonly unknown[] }
  | { readonly observed: "inconclusive"; readonly reason: string };

/**
 * Answers of an `observe` function.
 *
 * @example
 * observe: async (args, fx) => { const found = await bank.find(fx.businessKey); return found ? outcome.confirmed(found) : outcome.absent(); }
 */
export const outcome = {
  confirmed: <R>(value: R): Observation<R> => ({ observed: "confirmed", value }),
  absent: (options: { final?: boolean } = {}): Observation<never> => ({
    observed: "absent",
    final: options.final ?? false,
  }),
  duplicate: <R>(value: R, refs: readonly unknown[]): Observation<R> => ({ observed: "duplicate", value, refs }),
  inconclusive: (why: string): Observation<never> => ({ observed: "inconclusive", reason: why }),
};

import { registerErrorClass } from "../base/codec.ts";
import { durationMs } from "../base/duration.ts";

/**
 * What a body may throw to report how certain it is. After any other error the effect may have happened.
 */

/**
 * Nothing was sent: the request never left, so a retry is safe with any semantics.
 *
 * @example
 * throw new NotSent("the bank is closed", { retryAfterMs: 60_000 });
 */
export class NotSent extends Error {
  /** How long the upstream asks the caller to wait before the next attempt. */
  declare readonly retryAfterMs?: number;

  /** The message, and how long to wait before the next attempt. */
  constructor(
    message = "nothing was sent",
    options: ErrorOptions & { readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(message, options);
    this.name = "NotSent";
    if (options.retryAfterMs !== undefined) this.retryAfterMs = options.retryAfterMs;
  }
}

/** The pause that the upstream requests. An invalid number is ignored: a pause of NaN would make the retries spin. */
export function requestedDelayMs(error: unknown): number {
  const afterMs = error instanceof NotSent ? error.retryAfterMs : undefined;
  return typeof afterMs === "number" ? (durationMs(afterMs) ?? 0) : 0;
}

/**
 * Sent, but the response was lost: the outcome is unknown. Every unclassified error of a body counts as this.
 *
 * @example
 * throw new AckLost("the connection was reset");
 */
export class AckLost extends Error {
  /** The message, and the cause. */
  constructor(message = "the answer was lost", options?: ErrorOptions) {
    super(message, options);
    this.name = "AckLost";
  }
}

/**
 * The upstream refused for good: the effect did not happen and will not.
 *
 * @example
 * throw new DefiniteFailure("the account does not exist");
 */
export class DefiniteFailure extends Error {
  /**
   * Absent: the effect did not happen. `attempt`: only this attempt did nothing; an earlier one without a response is
   * still uncertain. `key`: the upstream has examined the content of the request. If it deduplicates, no earlier attempt
   * with the same key happened either, because it would have returned the earlier result.
   */
  declare readonly scope?: "attempt" | "key";

  /** The message, and which attempts the refusal settles. */
  constructor(message: string, options: ErrorOptions & { readonly scope?: "attempt" | "key" } = {}) {
    super(message, options);
    this.name = "DefiniteFailure";
    if (options.scope !== undefined) this.scope = options.scope;
  }
}

// An error that a body threw keeps its class through the journal, so that `instanceof` works live and on replay.
for (const kind of [NotSent, AckLost, DefiniteFailure]) registerErrorClass(kind.name, () => kind.prototype);

/** Whether a refusal settles the effect although an earlier attempt is uncertain. */
export function settlesEarlierAttempts(refusal: unknown, semantics: "idempotent" | "non_idempotent" | "read"): boolean {
  if (!(refusal instanceof DefiniteFailure) || refusal.scope === undefined || semantics === "read") return true;
  return refusal.scope === "key" && semantics === "idempotent";
}

/** What an observation of the upstream found. */
export type Observation<R = unknown> =
  | { readonly observed: "confirmed"; readonly value: R }
  /** `final`: the upstream will refuse this key from now on, so the effect can never happen. */
  | { readonly observed: "absent"; readonly final: boolean }
  /** It happened more than once; `refs` name the surplus effects, which must be compensated. */
  | { readonly observed: "duplicate"; readonly value: R; readonly refs: readonly unknown[] }
  | { readonly observed: "inconclusive"; readonly reason: string };

/**
 * Results of an `observe` function.
 *
 * @example
 * const observe = async (_args: unknown, fx: EffectContext) => {
 *   const found = await bank.find(fx.businessKey);
 *   return found ? outcome.confirmed(found) : outcome.absent();
 * };
 */
export const outcome = {
  /** It happened: the run continues with this value. */
  confirmed: <R>(value: R): Observation<R> => ({ observed: "confirmed", value }),
  /** It did not happen. `final`: nor will it any more, so that no settle delay is needed. */
  absent: (options: { final?: boolean } = {}): Observation<never> => ({
    observed: "absent",
    final: options.final ?? false,
  }),
  /** It happened more than once: `refs` name the surplus ones, which are compensated. */
  duplicate: <R>(value: R, refs: readonly unknown[]): Observation<R> => ({ observed: "duplicate", value, refs }),
  /** The upstream cannot say: the reconciler asks again later. */
  inconclusive: (why: string): Observation<never> => ({ observed: "inconclusive", reason: why }),
};

/**
 * What a body may throw to say how sure it is. Anything else leaves doubt: the act may have happened.
 */

/** Nothing was sent: the request never left, so trying again is safe whatever the semantics. */
export class NotSent extends Error {
  constructor(message = "nothing was sent", options?: ErrorOptions) {
    super(message, options);
    this.name = "NotSent";
  }
}

/** Sent, but the answer got lost: nobody knows. What every unexplained error of a body is taken for. */
export class AckLost extends Error {
  constructor(message = "the answer was lost", options?: ErrorOptions) {
    super(message, options);
    this.name = "AckLost";
  }
}

/** The other side said no, for good: it did not happen and will not. */
export class Definite extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Definite";
  }
}

/** What a look at the world found. */
export type Observation<R = unknown> =
  | { readonly observed: "confirmed"; readonly value: R }
  /** `final`: the other side will refuse this key from now on, so it can never happen. */
  | { readonly observed: "absent"; readonly final: boolean }
  /** It happened more than once; `refs` name the surplus acts, which must be undone. */
  | { readonly observed: "duplicate"; readonly value: R; readonly refs: readonly unknown[] }
  | { readonly observed: "inconclusive"; readonly why: string };

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
  inconclusive: (why: string): Observation<never> => ({ observed: "inconclusive", why }),
};

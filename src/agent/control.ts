import { describeThrown } from "../base/thrown.ts";
import { type ErrorCode, isTapeError } from "../model/errors.ts";

/**
 * Failures of a tool that a model may read about. Every other error of Tape (a cancellation, an exhausted budget, a lost
 * lease, a divergence) ends the agent instead: a model would only try to work around it.
 */
const forModels: ReadonlySet<ErrorCode> = new Set([
  "TAPE_EFFECT_FAILED",
  "TAPE_BUSINESS_KEY_TAKEN",
  "TAPE_RUN_FAILED",
  "TAPE_TOO_LARGE",
  "TAPE_NOT_ENCODABLE",
]);

/** A child run that ended by such an error ends its parent's agent, too. */
export const isControl = (error: unknown): boolean =>
  isTapeError(error) && (forModels.has(error.code) ? isControl(error.cause) : true);

/** An error as a model reads it. The reason why a child run failed is its cause. */
export const wordsOf = (error: unknown): string =>
  isTapeError(error, "TAPE_RUN_FAILED") && error.cause !== undefined
    ? `${error.message}: ${describeThrown(error.cause)}`
    : describeThrown(error);

/** Frameworks turn every error of a tool into words for the model. So the error is kept, and ends the next model call. */
const halted = new WeakMap<object, unknown>();

export function halt(site: object, error: unknown): void {
  if (!halted.has(site)) halted.set(site, error);
}

export function throwIfHalted(site: object): void {
  if (halted.has(site)) throw halted.get(site);
}

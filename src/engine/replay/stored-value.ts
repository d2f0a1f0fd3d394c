import { encode, throughCodec } from "../../base/codec.ts";
import { describeThrown } from "../../base/thrown.ts";

/**
 * The value as replay will see it, through the codec. What the codec changes (an instance that becomes a plain object,
 * a hole in an array) is changed the first time already. A value that cannot be encoded is returned as it is: the
 * append rejects it with the reason.
 */
export function asStored<T>(value: T): T {
  if (value === null || typeof value !== "object") return value;
  try {
    return throughCodec(value) as T;
  } catch {
    return value;
  }
}

/**
 * A rejection that the code handles later or never must not end the process and all its other runs. The failure is in
 * the journal.
 */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<T>).then === "function";
}

/** The limit for an effect's error: more than any message needs, and enough for the stack of a deep call. */
export const maxErrorChars = 16_384;

/**
 * An error as replay will see it. A thrown `undefined` becomes an error, too. If the error cannot be encoded, or is
 * longer than `maxChars`, only its message is stored.
 */
export function toStoredError(error: unknown, maxChars = Number.POSITIVE_INFINITY): unknown {
  if (error === undefined) return new Error("undefined was thrown");
  try {
    if (encode(error).length <= maxChars) return asStored(error);
  } catch {
    // fall back to its message
  }
  return new Error(
    describeThrown(error)
      .slice(0, maxChars / 16)
      .toWellFormed(),
  );
}

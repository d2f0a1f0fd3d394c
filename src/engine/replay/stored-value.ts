import { encode, throughCodec } from "../../base/codec.ts";
import { describeThrown } from "../../base/thrown.ts";

/**
 * The value as replay will see it: through the codec. What would look different the second time (an instance that comes
 * back as a plain object, a hole in an array) looks so the first time already. A value that cannot be encoded is handed
 * on: the append refuses it with the reason.
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
 * A rejection that the code looks at later, or never, must not end the process and everybody else's runs with it: what
 * failed is in the journal.
 */
export function ignoreRejection<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === "object" && value !== null && typeof (value as PromiseLike<T>).then === "function";
}

/** What an effect's error may take: more than any message for people; the stack of a deep call still fits. */
export const maxErrorChars = 16_384;

/**
 * An error as replay will see it. `undefined` thrown is still something thrown. One that cannot be encoded, or is longer
 * than `maxChars`, must not keep what it tells from being written.
 */
export function toStoredError(error: unknown, maxChars = Number.POSITIVE_INFINITY): unknown {
  if (error === undefined) return new Error("undefined was thrown");
  try {
    if (encode(error).length <= maxChars) return asStored(error);
  } catch {
    // its message says what there is to say
  }
  return new Error(
    describeThrown(error)
      .slice(0, maxChars / 16)
      .toWellFormed(),
  );
}

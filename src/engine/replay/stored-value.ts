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

/** An error as replay will see it. `undefined` thrown is still something thrown. */
export function toStoredError(error: unknown): unknown {
  if (error === undefined) return new Error("undefined was thrown");
  try {
    encode(error);
    return asStored(error);
  } catch {
    return new Error(describeThrown(error));
  }
}

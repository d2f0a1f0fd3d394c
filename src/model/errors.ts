import { registerErrorClass, unstored } from "../base/codec.ts";
import type { ErrorEntry } from "./error-entry.ts";

export type { ErrorEntry } from "./error-entry.ts";

import { type ErrorCode, errorTable } from "./error-table.ts";

export { type ErrorCode, errorTable } from "./error-table.ts";

/** Facts for programs, so that they need not parse the message. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/**
 * The only error this package throws on purpose.
 *
 * @example
 * try { await keeper.tryAcquire("sweeper"); }
 * catch (error) { if (error instanceof TapeError && error.code === "TAPE_LEASE_PAUSED") console.log(error.next); }
 */
export class TapeError extends Error {
  /** The code, such as TAPE_FENCED. */
  readonly code: ErrorCode;
  /** Facts for programs. */
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause });
    this.name = "TapeError";
    this.code = code;
    this.details = details;
    // An own, enumerable property, so that Node prints it with an uncaught error. A decoded error has the getter.
    Object.defineProperty(this, "next", { value: errorTable[code].next, enumerable: true, configurable: true });
  }

  /** Whose fault it is. */
  get fault(): ErrorEntry["fault"] {
    return errorTable[this.code].fault;
  }

  /** Whether a retry can help. */
  get retry(): ErrorEntry["retry"] {
    return errorTable[this.code].retry;
  }

  /** What to do next, as an imperative. */
  get next(): string {
    return errorTable[this.code].next;
  }
}

// `next` follows from the code, so it is not stored.
Object.defineProperty(TapeError.prototype, unstored, { value: ["next"] });

// A journal returns it as a TapeError again. With a code unknown to this version it becomes a plain Error.
registerErrorClass("TapeError", (error) => {
  const { code, details } = error as { code?: unknown; details?: unknown };
  const known = typeof code === "string" && Object.hasOwn(errorTable, code);
  return known && typeof details === "object" && details !== null ? TapeError.prototype : undefined;
});

/**
 * Whether this is a TapeError, with the given code; also true for one from another copy of this package.
 *
 * @example
 * const found = await app.run("hello-ada").catch((error) => {
 *   if (isTapeError(error, "TAPE_RUN_NOT_FOUND")) return undefined;
 *   throw error;
 * });
 */
export function isTapeError(error: unknown, code?: ErrorCode): error is TapeError {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const isOwn =
    error instanceof TapeError || (error.name === "TapeError" && Object.hasOwn(errorTable, String(error.code)));
  return isOwn && (code === undefined || error.code === code);
}

import { registerErrorClass, unstored } from "../base/codec.ts";
import type { ErrorEntry } from "./error-entry.ts";

export type { ErrorEntry } from "./error-entry.ts";

import { type ErrorCode, errorTable } from "./error-table.ts";

export { type ErrorCode, errorTable } from "./error-table.ts";

/** Facts a program may act on without reading the message. */
export type ErrorDetails = Readonly<Record<string, unknown>>;

/**
 * The only error this package throws on purpose.
 *
 * @example
 * try { await keeper.tryAcquire("sweeper"); }
 * catch (error) { if (error instanceof TapeError && error.code === "TAPE_LEASE_PAUSED") console.log(error.next); }
 */
export class TapeError extends Error {
  readonly code: ErrorCode;
  readonly details: ErrorDetails;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}, cause?: unknown) {
    super(`${code}: ${message}`, cause === undefined ? undefined : { cause });
    this.name = "TapeError";
    this.code = code;
    this.details = details;
    // Its own and enumerable: Node then prints it with an error that was not caught. A revived one has the getter.
    Object.defineProperty(this, "next", { value: errorTable[code].next, enumerable: true, configurable: true });
  }

  get fault(): ErrorEntry["fault"] {
    return errorTable[this.code].fault;
  }

  get retry(): ErrorEntry["retry"] {
    return errorTable[this.code].retry;
  }

  get next(): string {
    return errorTable[this.code].next;
  }
}

// What to do next follows from the code.
Object.defineProperty(TapeError.prototype, unstored, { value: ["next"] });

// From a journal it comes back as what it was. A code that this version does not know makes a plain error of it.
registerErrorClass("TapeError", (error) => {
  const { code, details } = error as { code?: unknown; details?: unknown };
  const known = typeof code === "string" && Object.hasOwn(errorTable, code);
  return known && typeof details === "object" && details !== null ? TapeError.prototype : undefined;
});

/** Also true of one that another copy of this package made. */
export function isTapeError(error: unknown, code?: ErrorCode): error is TapeError {
  if (!(error instanceof Error) || !("code" in error)) return false;
  const ours =
    error instanceof TapeError || (error.name === "TapeError" && Object.hasOwn(errorTable, String(error.code)));
  return ours && (code === undefined || error.code === code);
}

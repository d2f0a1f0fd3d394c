import { TapeError } from "../../model/errors.ts";

/** What an error of the client means for the transaction that got it. */
export type ErrorClass =
  | { readonly kind: "again" } // aborted because of other transactions: nothing was written
  | { readonly kind: "connection" } // no response: the call may or may not have been executed
  | { readonly kind: "exists" } // a row with this key is there already
  | { readonly kind: "forbidden" }
  | { readonly kind: "missing" } // no such instance, database or table
  | { readonly kind: "refused" }; // the statement is wrong

/** Status codes of gRPC. */
const kinds = new Map<number, ErrorClass["kind"]>([
  [1, "connection"], // CANCELLED
  [2, "connection"], // UNKNOWN
  [4, "connection"], // DEADLINE_EXCEEDED
  [5, "missing"], // NOT_FOUND
  [6, "exists"], // ALREADY_EXISTS
  [7, "forbidden"], // PERMISSION_DENIED
  [8, "connection"], // RESOURCE_EXHAUSTED
  [10, "again"], // ABORTED
  [13, "connection"], // INTERNAL
  [14, "connection"], // UNAVAILABLE
  [16, "forbidden"], // UNAUTHENTICATED
]);

export function classifyError(error: unknown): ErrorClass {
  const { code, message = "" } = error as { code?: unknown; message?: string };
  // An idle session is deleted after an hour; its transaction goes with it.
  if (code === 5 && /session not found/i.test(message)) return { kind: "connection" };
  if (typeof code === "number") return { kind: kinds.get(code) ?? "refused" };
  return { kind: "connection" };
}

export function unreachable(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_UNREACHABLE", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

export function busy(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_BUSY", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

export function forbidden(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_FORBIDDEN", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

export function outcomeUnknown(cause: unknown): TapeError {
  const message = "the response to a commit was lost, and the database could not be queried whether it happened";
  return new TapeError("TAPE_OUTCOME_UNKNOWN", message, {}, cause);
}

/** The error of a call that has written nothing. */
export function faultOf(error: unknown): TapeError {
  if (error instanceof TapeError) return error;
  const { kind } = classifyError(error);
  if (kind === "again") return busy(error);
  if (kind === "connection") return unreachable(error);
  if (kind === "forbidden") return forbidden(error);
  if (kind === "missing")
    return new TapeError("TAPE_STORE_UNREACHABLE", `nothing was written: ${(error as Error).message}`, {}, error);
  return new TapeError("TAPE_INVARIANT", `the database rejected a statement: ${(error as Error).message}`, {}, error);
}

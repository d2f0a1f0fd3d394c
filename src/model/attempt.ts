import { isTapeError } from "./errors.ts";

/** The sender lost its lease before it sent: nothing failed, so nothing is charged as a failed attempt. */
export function isInterrupted(error: unknown): boolean {
  if (isTapeError(error, "TAPE_LEASE_LOST") || isTapeError(error, "TAPE_FENCED")) return true;
  return error instanceof Error && error.name === "NotSent" && error.cause !== undefined && isInterrupted(error.cause);
}

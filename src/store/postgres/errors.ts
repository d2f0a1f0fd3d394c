import { isTapeError, TapeError } from "../../model/errors.ts";

/** What a database error means for the transaction that got it. */
export type ErrorClass =
  | { readonly kind: "refused"; readonly code: string; readonly constraint: string | undefined } // the statement is wrong
  | { readonly kind: "again" } // rolled back because of other transactions
  | { readonly kind: "slow" } // a timeout of ours or the operator's
  | { readonly kind: "blocked" } // another transaction's lock
  | { readonly kind: "connection" }; // no response: the statement may or may not have been executed

interface DatabaseError extends Error {
  readonly code?: string;
  readonly constraint?: string;
  readonly severity?: string;
}

/** Serialization failure, deadlock: PostgreSQL has rolled back, and the transaction may be retried. */
const transient = new Set(["40001", "40P01"]);
/** Query cancelled, idle in transaction, transaction timeout. */
const timeouts = new Set(["57014", "25P03", "25P04"]);

export function classifyError(error: unknown): ErrorClass {
  const { code, constraint, severity } = error as DatabaseError;
  if (code === "55P03") return { kind: "blocked" };
  if ((code !== undefined && transient.has(code)) || isOutdatedPlan(error)) return { kind: "again" };
  if (code !== undefined && timeouts.has(code)) return { kind: "slow" };
  // Class 08 connection, 57P0x shutdown, 53 resources, 25006 a standby; and every error of the socket itself.
  if (code === undefined || severity === undefined || /^(08|57P|53|25006)/.test(code)) return { kind: "connection" };
  return { kind: "refused", code, constraint };
}

/** A statement was prepared before a migration changed the type of a column that it returns. */
export function isOutdatedPlan(error: unknown): boolean {
  const { code, routine } = error as { code?: string; routine?: string };
  return code === "0A000" && routine === "RevalidateCachedQuery";
}

export function unreachable(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_UNREACHABLE", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

export function busy(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_BUSY", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

/** The role lacks a privilege; a retry cannot succeed. */
export function isForbidden(error: unknown): boolean {
  return (error as { code?: string }).code === "42501";
}

export function forbidden(cause: unknown): TapeError {
  return new TapeError("TAPE_STORE_FORBIDDEN", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

/** Raised by the triggers of a shard, for a tenant that is not there. */
const notResident = "TP001";

/** The tenant moves to another shard, or has moved; undefined: the error is another one. */
export function tenantMoving(cause: unknown): TapeError | undefined {
  if ((cause as { code?: string } | undefined)?.code !== notResident) return undefined;
  return new TapeError("TAPE_TENANT_MOVING", `nothing was written: ${(cause as Error).message}`, {}, cause);
}

/** A tenant that leaves this shard has nothing to claim here; the others do. */
export function unlessMoving(error: unknown): undefined {
  if (!isTapeError(error, "TAPE_TENANT_MOVING")) throw error;
}

/** For work that changes nothing, or whose change may be repeated. */
export function readFault(error: unknown): TapeError {
  if (error instanceof TapeError) return error;
  if (classifyError(error).kind === "connection") return unreachable(error);
  const moving = tenantMoving(error);
  if (moving !== undefined) return moving;
  return isForbidden(error) ? forbidden(error) : busy(error);
}

export function outcomeUnknown(cause: unknown): TapeError {
  const message = "the response to a commit was lost, and the database could not be queried whether it happened";
  return new TapeError("TAPE_OUTCOME_UNKNOWN", message, {}, cause);
}

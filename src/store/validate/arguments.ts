import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, ItemResult, LeaseTarget } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import { termReasons } from "../../model/records.ts";
import type { AuditInfo } from "../contract/store.ts";
import { checkList, checkName, checkObject, checkWhole } from "./entry.ts";

/** Starts every item before awaiting any, so that they share commits; each gets its own result. */
export async function runBatch<I, T extends object>(
  items: readonly I[],
  limits: Limits,
  work: (item: I) => Promise<T>,
): Promise<ItemResult<T>[]> {
  checkBatch(items, limits);
  return Promise.all(
    items.map(async (item): Promise<ItemResult<T>> => {
      try {
        return { ok: true, ...(await work(item)) };
      } catch (error) {
        if (error instanceof TapeError) return { ok: false, error };
        throw error;
      }
    }),
  );
}

export function checkBatch(items: readonly unknown[], limits: Limits): void {
  checkList("batch", items);
  if (items.length > limits.batchItems) {
    throw new TapeError("TAPE_TOO_LARGE", `a batch holds at most ${limits.batchItems} items`, { limit: "batchItems" });
  }
}

export function checkTarget(target: LeaseTarget, limits: Limits): void {
  const keys = typeof target === "object" && target !== null ? Object.keys(target) : [];
  if (keys.length !== 1 || !["run", "name", "journal"].includes(keys[0]!)) {
    throw new TapeError("TAPE_BAD_INPUT", "a target is { run }, { name } or { journal }", { field: "target" });
  }
  if ("journal" in target) checkWhole("journal", target.journal, 1);
  else checkName("target", "run" in target ? target.run : target.name, limits);
}

/** Pre-empting a live holder requires the operator's name and reason, which the term history keeps. */
export function checkExpectation(request: AcquireRequest, limits: Limits): void {
  const { expect, reason } = request;
  const conditions = ["free", "expired", "free_or_expired", "any"];
  if (typeof expect === "object" && expect !== null) {
    if (typeof expect.token !== "bigint") {
      throw new TapeError("TAPE_BAD_INPUT", "expect.token must be a bigint", { field: "expect" });
    }
    if (expect.owner !== null) checkName("expect.owner", expect.owner, limits);
  } else if (!conditions.includes(expect)) {
    throw new TapeError("TAPE_BAD_INPUT", `expect must be ${conditions.join(", ")} or { owner, token }`, {
      field: "expect",
    });
  }
  if (reason !== undefined && !termReasons.includes(reason)) {
    throw new TapeError("TAPE_BAD_INPUT", `reason must be one of ${termReasons.join(", ")}`, { field: "reason" });
  }
  if (expect === "any") {
    checkName("by", request.by, limits);
    checkName("auditReason", request.auditReason, limits);
  }
}

/**
 * The one error for a stale owner, whatever it tried. `row`: the lease; undefined: there is none, or another tenant's.
 */
export function staleError(fence: Fence, row?: Readonly<Record<string, unknown>>): TapeError {
  const current = row?.token as string | undefined;
  const holder = row?.label ?? row?.owner;
  const held = current === undefined ? "none" : `${current}, ${holder ? `held by ${holder}` : "free"}`;
  const message = `stale token ${fence.token}: current token is ${held}`;
  return new TapeError("TAPE_FENCED", message, { journal: fence.journal, token: String(fence.token), current });
}

/** The one error for a late response that matches no attempt, whichever of its numbers is wrong. */
export function noAttempt({ run, pos, sub = 0 }: { run: number; pos: number; sub?: number | undefined }): TapeError {
  const message = "the effect has no attempt under this token and nonce";
  return new TapeError("TAPE_FENCED", message, { run, pos, sub });
}

/** The one error for a callback's token that opens nothing, whatever the reason. */
export function unknownCallback(): TapeError {
  return new TapeError("TAPE_NOT_FOUND", "no gate waits for this callback");
}

/** The position in a consecutively numbered feed; the cursor is that number. */
export function parseCursor(cursor: string | undefined, start = 0): number {
  if (cursor === undefined) return start;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new TapeError("TAPE_BAD_INPUT", "the cursor does not belong to this store", { field: "cursor" });
}

/** An operator action requires a name and a reason, which the audit log keeps. */
export function checkAuditInfo(audit: AuditInfo, limits: Limits): void {
  checkObject("audit", audit);
  nameChecker(limits)({ by: audit.by, reason: audit.reason, ...defined({ home: audit.home }) });
}

/** Checks that each value is a name. */
export function nameChecker(limits: Limits): (names: Readonly<Record<string, unknown>>) => void {
  return (names) => {
    for (const what in names) checkName(what, names[what], limits);
  };
}

export function ifGiven<T>(value: T | undefined, check: (value: T) => void): void {
  if (value !== undefined) check(value);
}

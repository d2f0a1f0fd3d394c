import { defined } from "../../base/defined.ts";
import { TapeError } from "../../model/errors.ts";
import type { Fence } from "../../model/fence.ts";
import type { AcquireRequest, ItemResult, LeaseTarget } from "../../model/lease.ts";
import type { Limits } from "../../model/limits.ts";
import { termReasons } from "../../model/records.ts";
import type { AuditInfo } from "../contract/store.ts";
import { checkList, checkName, checkObject, checkWhole } from "./entry.ts";

/** Starts every item before awaiting any, so that they share commits; each gets its own verdict. */
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

/** Whoever pre-empts a live holder says who they are and why: the ledger keeps it. */
export function checkExpectation(request: AcquireRequest, limits: Limits): void {
  const { expect, reason } = request;
  const words = ["free", "expired", "free_or_expired", "any"];
  if (typeof expect === "object" && expect !== null) {
    if (typeof expect.token !== "bigint") {
      throw new TapeError("TAPE_BAD_INPUT", "expect.token must be a bigint", { field: "expect" });
    }
    if (expect.owner !== null) checkName("expect.owner", expect.owner, limits);
  } else if (!words.includes(expect)) {
    throw new TapeError("TAPE_BAD_INPUT", `expect must be ${words.join(", ")} or { owner, token }`, {
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

/** The one refusal of a stale owner, whatever it tried. `row`: the lease; undefined: there is none, or another tenant's. */
export function staleError(fence: Fence, row?: Readonly<Record<string, unknown>>): TapeError {
  const current = row?.token as string | undefined;
  const owner = row?.label ?? row?.owner ?? "no owner";
  const message = `stale token ${fence.token}: current token is ${current ?? "none"}, held by ${owner}`;
  return new TapeError("TAPE_FENCED", message, { journal: fence.journal, token: String(fence.token), current });
}

/** What is said of a late answer that fits no attempt, whichever of its numbers is wrong. */
export function noAttempt({ run, pos, sub = 0 }: { run: number; pos: number; sub?: number | undefined }): TapeError {
  const message = "no attempt of this effect was made under that token and nonce";
  return new TapeError("TAPE_FENCED", message, { run, pos, sub });
}

/** The position in a feed that is numbered through; the cursor is that number. */
export function parseCursor(cursor: string | undefined, start = 0): number {
  if (cursor === undefined) return start;
  if (/^\d{1,15}$/.test(cursor)) return Number(cursor);
  throw new TapeError("TAPE_BAD_INPUT", "this cursor is not one of this store's", { field: "cursor" });
}

/** Whoever does something by hand says who and why: the audit keeps it. */
export function checkAuditInfo(act: AuditInfo, limits: Limits): void {
  checkObject("act", act);
  nameChecker(limits)({ by: act.by, reason: act.reason, ...defined({ home: act.home }) });
}

/** Each of these must be a name. */
export function nameChecker(limits: Limits): (names: Readonly<Record<string, unknown>>) => void {
  return (names) => {
    for (const what in names) checkName(what, names[what], limits);
  };
}

export function ifGiven<T>(value: T | undefined, check: (value: T) => void): void {
  if (value !== undefined) check(value);
}

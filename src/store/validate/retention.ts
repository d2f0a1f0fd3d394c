import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { RetentionPolicy } from "../../model/retention.ts";
import type { DueTree, EndedPlace, RetentionOps } from "../contract/retention.ts";
import type { ErasureOps, RetentionReadOps, RetentionWriteOps } from "../contract/store.ts";
import { checkAuditInfo, ifGiven, nameChecker } from "./arguments.ts";
import { checkFence, checkFlag, checkList, checkObject, checkStored, checkText, checkWhole } from "./entry.ts";
import { checkCheckpoint } from "./events.ts";
import { filterChecks } from "./filters.ts";

/** The largest delay of a check, and of a view ahead: a hundred years. */
const maxMs = 100 * 366 * 86_400_000;

export function validatedRetentionReads(read: RetentionReadOps, limits: Limits): RetentionReadOps {
  const { names, page } = filterChecks(limits);
  return {
    async retention(tenant, withinMs) {
      names({ tenant });
      ifGiven(withinMs, (ms) => checkMs("withinMs", ms));
      return read.retention(tenant, withinMs);
    },
    async archived(tenant, part = {}) {
      names({ tenant });
      page(part);
      ifGiven(part.id, (id) => names({ id }));
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.archived(tenant, part);
    },
  };
}

export function validatedRetentionWrites(
  intake: ErasureOps & RetentionWriteOps,
  limits: Limits,
): ErasureOps & RetentionWriteOps {
  const names = nameChecker(limits);
  return {
    ...validatedErasure(intake, limits),
    async requestRetention(tenant, audit) {
      names({ tenant });
      checkAuditInfo(audit, limits);
      return intake.requestRetention(tenant, audit);
    },
  };
}

function validatedErasure(intake: ErasureOps, limits: Limits): ErasureOps {
  const names = nameChecker(limits);
  return {
    async eraseRun(tenant, run, request) {
      names({ tenant, run });
      checkAuditInfo(request, limits);
      ifGiven(request.tree, (tree) => checkFlag("tree", tree));
      ifGiven(request.after, (after) => checkText("after", after, limits));
      return intake.eraseRun(tenant, run, request);
    },
  };
}

export function validatedRetention(ops: RetentionOps, limits: Limits): RetentionOps {
  const { names, page } = filterChecks(limits);
  const journals = (what: string, list: readonly number[]): void => {
    checkList(what, list);
    for (const journal of list) if (!Number.isSafeInteger(journal)) checkWhole(what, journal, 1);
  };
  return {
    identity: (tenant) => ops.identity(tenant),
    async ended(tenant, after, until, limit) {
      names({ tenant });
      checkPlace(after);
      checkTime("until", until);
      ifGiven(limit, (rows) => page({ limit: rows }));
      return ops.ended(tenant, after, until, limit);
    },
    async date(fence, policy, after, until, limit) {
      checkFence(fence);
      checkPolicy(policy);
      checkPlace(after);
      checkTime("until", until);
      ifGiven(limit, (rows) => page({ limit: rows }));
      return ops.date(fence, policy, after, until, limit);
    },
    async due(tenant, until, limit) {
      names({ tenant });
      checkTime("until", until);
      checkBatchSize(limit, limits);
      return ops.due(tenant, until, limit);
    },
    async postpone(fence, roots, delayMs) {
      checkFence(fence);
      journals("roots", roots);
      checkMs("delayMs", delayMs);
      return ops.postpone(fence, roots, delayMs);
    },
    async records(tenant, numbers, part) {
      names({ tenant });
      journals("journals", numbers);
      return ops.records(tenant, numbers, part);
    },
    async chunks(tenant, runs, after) {
      names({ tenant });
      journals("runs", runs);
      return ops.chunks(tenant, runs, after);
    },
    async blobs(tenant, runs, after) {
      names({ tenant });
      journals("runs", runs);
      return ops.blobs(tenant, runs, after);
    },
    async prune(fence, trees, file, checkpoint) {
      checkFence(fence);
      checkTrees(trees, limits);
      checkObject("file", file);
      names({ archive: file.archive, sha256: file.sha256 });
      checkStored("checkpoint", checkpoint, limits);
      checkCheckpoint(checkpoint, limits);
      return ops.prune(fence, trees, file, checkpoint);
    },
  };
}

function checkMs(field: string, ms: number): void {
  if (typeof ms === "number" && ms >= 0 && ms <= maxMs) return;
  throw new TapeError("TAPE_BAD_INPUT", `${field} must be milliseconds, not ${String(ms)}`, { field });
}

function checkTime(field: string, at: number): void {
  if (Number.isSafeInteger(at)) return;
  throw new TapeError("TAPE_BAD_INPUT", `${field} must be a time in milliseconds`, { field });
}

function checkPlace(after: EndedPlace): void {
  checkObject("after", after);
  checkTime("after.at", after.at);
  checkTime("after.journal", after.journal);
}

function checkPolicy(policy: RetentionPolicy): void {
  checkObject("policy", policy);
  ifGiven(policy.defaultMs, (ms) => checkMs("policy.defaultMs", ms));
  for (const ms of Object.values(policy.workflows ?? {})) if (ms !== null) checkMs("policy.workflows", ms);
}

function checkBatchSize(limit: number, limits: Limits): void {
  checkWhole("limit", limit, 1);
  if (limit <= limits.batchItems) return;
  throw new TapeError("TAPE_TOO_LARGE", `at most ${limits.batchItems} trees at once`, { limit: "batchItems" });
}

function checkTrees(trees: readonly DueTree[], limits: Limits): void {
  checkList("trees", trees);
  checkBatchSize(trees.length, limits);
  for (const tree of trees) {
    checkObject("tree", tree);
    checkWhole("tree.root", tree.root, 1);
    checkTime("tree.dueAt", tree.dueAt);
    checkList("tree.journals", tree.journals);
  }
}

import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import type { ClaimOps, FindRequest, Share } from "../contract/store.ts";
import { checkExpectation, checkTarget, ifGiven, nameChecker } from "./arguments.ts";
import { checkBuildClaim } from "./builds.ts";
import {
  checkClaimant,
  checkFence,
  checkFlag,
  checkList,
  checkNonce,
  checkObject,
  checkText,
  checkWhole,
} from "./entry.ts";
import { checkQueueRooms } from "./queue.ts";

export function validatedClaim(claim: ClaimOps, limits: Limits): ClaimOps {
  const names = nameChecker(limits);
  return {
    async acquire(tenant, request) {
      names({ tenant });
      checkObject("request", request);
      checkTarget(request.target, limits);
      checkClaimant(request.claimant, limits);
      checkNonce(request.nonce);
      checkExpectation(request, limits);
      return claim.acquire(tenant, request);
    },
    async find(request) {
      checkFind(request, limits);
      return claim.find(request);
    },
    async renew(renewals) {
      checkList("renewals", renewals);
      for (const renewal of renewals) {
        checkObject("renewal", renewal);
        checkFence(renewal.fence);
        checkWhole("progress", renewal.progress);
        ifGiven(renewal.progressAgoMs, (ago) => checkWhole("progressAgoMs", ago));
        ifGiven(renewal.progressNote, (note) => checkText("progressNote", note, limits));
      }
      return claim.renew(renewals);
    },
    async callbackSecret(fence) {
      checkFence(fence);
      return claim.callbackSecret(fence);
    },
    async pause(tenant, name, paused, by, why, via) {
      names({ tenant, name, by, why });
      checkFlag("paused", paused);
      return claim.pause(tenant, name, paused, by, why, via);
    },
    async restored(reason, by, via, home) {
      names({ reason });
      ifGiven(by, (who) => names({ by: who }));
      ifGiven(home, (of) => names({ home: of }));
      return claim.restored(reason, by, via, home);
    },
  };
}

function checkFind(request: FindRequest, limits: Limits): void {
  const names = nameChecker(limits);
  checkObject("request", request);
  checkClaimant(request.claimant, limits);
  checkNonce(request.nonce);
  names({ nextReactor: request.nextReactor });
  checkList("staleOf", request.staleOf);
  for (const reactor of request.staleOf) names({ staleOf: reactor });
  checkWhole("limit", request.limit, 1);
  ifGiven(request.staleLimit, (max) => checkWhole("staleLimit", max));
  ifGiven(request.preload, (preload) => {
    checkObject("preload", preload);
    checkWhole("withinMs", preload.withinMs);
    checkWhole("limit", preload.limit);
  });
  ifGiven(request.tenant, (tenant) => names({ tenant }));
  ifGiven(request.workflows, (workflows) => {
    checkList("workflows", workflows);
    for (const workflow of workflows) names({ workflow });
  });
  ifGiven(request.kind, (kind) => {
    if (kind === "item" && request.workflows === undefined) return;
    throw new TapeError("TAPE_BAD_INPUT", "a find is for items or for runs of some workflows", { field: "kind" });
  });
  ifGiven(request.queues, (queues) => checkQueueRooms(queues, request, limits));
  ifGiven(request.build, (build) => checkBuildClaim(build, limits));
  ifGiven(request.share, (share) => checkShare(share, request, limits));
}

function checkShare(share: Share, { kind }: FindRequest, limits: Limits): void {
  checkObject("share", share);
  checkWhole("max", share.max, 1);
  checkList("busy", share.busy);
  for (const held of share.busy) {
    checkObject("busy", held);
    checkText("callee", held.callee, limits);
    checkWhole("items", held.items);
  }
  if (kind === "item") return;
  throw new TapeError("TAPE_BAD_INPUT", "a share applies to items only: runs have no callee", { field: "share" });
}

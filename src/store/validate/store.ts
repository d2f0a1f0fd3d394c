import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { type QuotaKind, quotaKinds, unlimited } from "../../model/quota.ts";
import type { ClaimOps, IntakeOps, Store } from "../contract/store.ts";
import { checkAuditInfo, checkExpectation, checkTarget, ifGiven, nameChecker } from "./arguments.ts";
import {
  checkClaimant,
  checkFence,
  checkFlag,
  checkList,
  checkNonce,
  checkObject,
  checkStored,
  checkText,
  checkWhole,
} from "./entry.ts";
import { validatedRead } from "./read.ts";
import { checkSchedule } from "./schedule.ts";

/**
 * The entrance of every store: each argument of each call is looked at before anything else happens, so that a store
 * behind it sees only what the contract says. Types may lie, because callers may be JavaScript. What is encoded
 * (records, runs, values) is checked where it is encoded, in check.ts.
 */
export function validated(store: Store): Store {
  const { limits } = store;
  return {
    ...store,
    intake: validatedIntake(store.intake, limits),
    claim: validatedClaim(store.claim, limits),
    read: validatedRead(store.read, limits),
    once(key) {
      checkObject("key", key);
      nameChecker(limits)({ tenant: key.tenant, key: key.key, hash: key.hash });
      return validatedIntake(store.once(key), limits);
    },
  };
}

function validatedIntake(intake: IntakeOps, limits: Limits): IntakeOps {
  const names = nameChecker(limits);
  return {
    async createRuns(tenant, specs, first) {
      names({ tenant });
      if (first !== undefined) {
        checkClaimant(first, limits);
        checkNonce(first.nonce);
      }
      return intake.createRuns(tenant, specs, first);
    },
    async signal(tenant, run, signal) {
      names({ tenant, run });
      checkObject("signal", signal);
      // Which gates it may answer is the store's to find out.
      if (Object.hasOwn(signal, "approves")) {
        throw new TapeError("TAPE_BAD_INPUT", "signal has no field approves", { field: "signal" });
      }
      return intake.signal(tenant, run, signal);
    },
    async cancel(tenant, run, ask) {
      names({ tenant, run });
      checkObject("ask", ask);
      ifGiven(ask.key, (key) => names({ key }));
      return intake.cancel(tenant, run, ask);
    },
    async leaveEvidence(tenant, attempt, evidence) {
      names({ tenant });
      checkObject("attempt", attempt);
      checkWhole("run", attempt.run, 1);
      checkWhole("pos", attempt.pos);
      ifGiven(attempt.sub, (sub) => checkWhole("sub", sub));
      checkNonce(attempt.token);
      checkNonce(attempt.nonce);
      checkObject("evidence", evidence);
      const other = Object.keys(evidence).find((key) => !evidenceFields.has(key));
      if (other !== undefined) {
        throw new TapeError("TAPE_BAD_INPUT", `evidence has no field ${other}`, { field: "evidence" });
      }
      return intake.leaveEvidence(tenant, attempt, evidence);
    },
    async fireTimer(tenant, timer) {
      names({ tenant });
      checkObject("timer", timer);
      checkWhole("run", timer.run, 1);
      checkWhole("pos", timer.pos);
      names({ purpose: timer.purpose });
      return intake.fireTimer(tenant, timer);
    },
    async putValue(tenant, key, value, when) {
      names({ tenant, key });
      if (when !== "must_create" && when !== "unconditional") {
        checkObject("when", when);
        checkWhole("version", when.version);
      }
      return intake.putValue(tenant, key, value, when);
    },
    async deleteValue(tenant, key, version) {
      names({ tenant, key });
      checkWhole("version", version, 1);
      return intake.deleteValue(tenant, key, version);
    },
    async putSchedule(tenant, row, seen) {
      checkObject("schedule", row);
      names({ tenant, id: row.id });
      if (row.nextAt !== null) checkWhole("nextAt", row.nextAt);
      checkFlag("paused", row.paused);
      checkSchedule("spec", row.id, row.spec, limits);
      if (seen !== undefined && seen !== null) {
        checkObject("seen", seen);
        checkWhole("seen.version", seen.version, 1);
        checkStored("seen.spec", seen.spec, limits);
      }
      return intake.putSchedule(tenant, row, seen);
    },
    async deleteSchedule(tenant, id) {
      names({ tenant, id });
      return intake.deleteSchedule(tenant, id);
    },
    async fireSchedule(tenant, id, version, nextAt, runs, spec) {
      names({ tenant, id });
      checkWhole("version", version, 1);
      if (nextAt !== null) checkWhole("nextAt", nextAt);
      checkList("runs", runs);
      if (spec !== undefined) {
        checkObject("spec", spec);
        checkStored("spec.from", spec.from, limits);
        checkSchedule("spec.to", id, spec.to, limits);
      }
      return intake.fireSchedule(tenant, id, version, nextAt, runs, spec);
    },
    async prune(tenant, endedBefore, limit, act) {
      names({ tenant });
      ifGiven(act, (by) => checkAuditInfo(by, limits));
      if (!Number.isFinite(endedBefore)) {
        throw new TapeError("TAPE_BAD_INPUT", "endedBefore must be a time in milliseconds", { field: "endedBefore" });
      }
      checkWhole("limit", limit, 1);
      return intake.prune(tenant, endedBefore, limit, act);
    },
    async setQuota(tenant, change, act) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      checkObject("quota", change);
      for (const [kind, limit] of Object.entries(change)) {
        if (!quotaKinds.includes(kind as QuotaKind)) {
          const message = `there is no quota ${kind}; there are ${quotaKinds.join(", ")}`;
          throw new TapeError("TAPE_BAD_INPUT", message, { field: kind });
        }
        if (limit !== null && limit !== undefined) checkWhole(kind, limit, unlimited);
      }
      checkAuditInfo(act, limits);
      return intake.setQuota(tenant, change, act);
    },
    async putToken(token, act) {
      checkObject("token", token);
      const { id, tenant, name, role, hash } = token;
      names({ id, tenant, name, role, hash });
      if (name === bootstrapName) {
        const message = `${bootstrapName} is the name of the token in the settings; choose another`;
        throw new TapeError("TAPE_BAD_INPUT", message, { field: "name" });
      }
      ifGiven(token.expiresInMs, (ms) => checkWhole("expiresInMs", ms, 1));
      checkAuditInfo(act, limits);
      return intake.putToken(token, act);
    },
    async revokeToken(tenant, id, act) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      names({ id });
      checkAuditInfo(act, limits);
      return intake.revokeToken(tenant, id, act);
    },
    async recordAudit(tenant, action, act, detail) {
      checkText("tenant", tenant, limits);
      names({ action });
      checkAuditInfo(act, limits);
      return intake.recordAudit(tenant, action, act, detail);
    },
    async touchToken(id) {
      names({ id });
      return intake.touchToken(id);
    },
    async reportProcess(tenant, report) {
      checkObject("report", report);
      names({ tenant, owner: report.owner, label: report.label });
      return intake.reportProcess(tenant, report);
    },
    async removeProcess(tenant, owner) {
      names({ tenant, owner });
      return intake.removeProcess(tenant, owner);
    },
  };
}

/** Of the admin's token that is in a server's settings: no token of the store may be taken for it in the audit. */
export const bootstrapName = "bootstrap";

const evidenceFields: ReadonlySet<string> = new Set(["happened", "value", "error"]);

function validatedClaim(claim: ClaimOps, limits: Limits): ClaimOps {
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
      checkObject("request", request);
      checkClaimant(request.claimant, limits);
      checkNonce(request.nonce);
      names({ nextReactor: request.nextReactor });
      checkList("staleOf", request.staleOf);
      for (const reactor of request.staleOf) names({ staleOf: reactor });
      checkWhole("limit", request.limit, 1);
      ifGiven(request.staleLimit, (most) => checkWhole("staleLimit", most));
      ifGiven(request.ahead, (ahead) => {
        checkObject("ahead", ahead);
        checkWhole("withinMs", ahead.withinMs);
        checkWhole("limit", ahead.limit);
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
      ifGiven(request.share, (share) => {
        checkObject("share", share);
        checkWhole("most", share.most, 1);
        checkList("busy", share.busy);
        for (const held of share.busy) {
          checkObject("busy", held);
          checkText("callee", held.callee, limits);
          checkWhole("items", held.items);
        }
        if (request.kind === "item") return;
        throw new TapeError("TAPE_BAD_INPUT", "a share is of items: runs call nobody", { field: "share" });
      });
      return claim.find(request);
    },
    async renew(renewals) {
      checkList("renewals", renewals);
      for (const renewal of renewals) {
        checkObject("renewal", renewal);
        checkFence(renewal.fence);
        checkWhole("progress", renewal.progress);
        ifGiven(renewal.progressNote, (note) => checkText("progressNote", note, limits));
      }
      return claim.renew(renewals);
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

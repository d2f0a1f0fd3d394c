import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { type QuotaKind, type QuotaLimits, quotaKinds, unlimited } from "../../model/quota.ts";
import type { AdminReadOps, AdminWriteOps, NewToken } from "../contract/store.ts";
import { checkAuditInfo, ifGiven, nameChecker } from "./arguments.ts";
import { checkFlag, checkObject, checkStored, checkText, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";
import { checkSchedule } from "./schedule.ts";

/** Of the admin's token that is in a server's settings: no token of the store may be taken for it in the audit. */
export const bootstrapName = "bootstrap";

export function validatedAdminWrites(intake: AdminWriteOps, limits: Limits): AdminWriteOps {
  const names = nameChecker(limits);
  return {
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
      checkQuotaChange(change);
      checkAuditInfo(act, limits);
      return intake.setQuota(tenant, change, act);
    },
    async putToken(token, act) {
      checkToken(token, limits);
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

export function validatedAdminReads(read: AdminReadOps, limits: Limits): Omit<AdminReadOps, "settings"> {
  const { names, page } = filterChecks(limits);
  return {
    async token(id) {
      names({ id });
      return read.token(id);
    },
    async tokens(tenant, part = {}) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.tokens(tenant, part);
    },
    async quota(tenant) {
      names({ tenant });
      return read.quota(tenant);
    },
    async quotas(part = {}) {
      page(part);
      ifGiven(part.above, (above) => checkText("above", above, limits));
      return read.quotas(part);
    },
    async processes(tenant) {
      names({ tenant });
      return read.processes(tenant);
    },
  };
}

function checkQuotaChange(change: Partial<QuotaLimits>): void {
  checkObject("quota", change);
  for (const [kind, limit] of Object.entries(change)) {
    if (!quotaKinds.includes(kind as QuotaKind)) {
      const message = `there is no quota ${kind}; there are ${quotaKinds.join(", ")}`;
      throw new TapeError("TAPE_BAD_INPUT", message, { field: kind });
    }
    if (limit !== null && limit !== undefined) checkWhole(kind, limit, unlimited);
  }
}

function checkToken(token: NewToken, limits: Limits): void {
  checkObject("token", token);
  const { id, tenant, name, role, hash } = token;
  nameChecker(limits)({ id, tenant, name, role, hash });
  if (name === bootstrapName) {
    const message = `${bootstrapName} is the name of the token in the settings; choose another`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "name" });
  }
  ifGiven(token.expiresInMs, (ms) => checkWhole("expiresInMs", ms, 1));
}

import { TapeError } from "../../model/errors.ts";
import type { Limits } from "../../model/limits.ts";
import { type QuotaKind, type QuotaLimits, quotaKinds, unlimited } from "../../model/quota.ts";
import type { AdminReadOps, AdminWriteOps, AuditInfo, NewToken, ScheduleAudit } from "../contract/store.ts";
import { checkAuditInfo, ifGiven, nameChecker } from "./arguments.ts";
import { checkFlag, checkList, checkObject, checkStored, checkText, checkWhole } from "./entry.ts";
import { filterChecks } from "./filters.ts";
import { checkSchedule } from "./schedule.ts";

/**
 * Name of the admin token in a server's settings. No token of the store may have it: the audit log would confuse the
 * two.
 */
export const bootstrapName = "bootstrap";

export function validatedAdminWrites(intake: AdminWriteOps, limits: Limits): AdminWriteOps {
  const names = nameChecker(limits);
  return {
    async putSchedule(tenant, row, seen, audit) {
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
      ifGiven(audit, (info) => checkScheduleAudit(info, limits));
      return intake.putSchedule(tenant, row, seen, audit);
    },
    async deleteSchedule(tenant, id) {
      names({ tenant, id });
      return intake.deleteSchedule(tenant, id);
    },
    async prune(tenant, endedBefore, limit, audit, past) {
      names({ tenant });
      ifGiven(audit, (info) => checkAuditInfo(info, limits));
      if (!Number.isFinite(endedBefore)) {
        throw new TapeError("TAPE_BAD_INPUT", "endedBefore must be a time in milliseconds", { field: "endedBefore" });
      }
      checkWhole("limit", limit, 1);
      checkPast(past, audit);
      return intake.prune(tenant, endedBefore, limit, audit, past);
    },
    async setQuota(tenant, change, audit) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      checkQuotaChange(change);
      checkAuditInfo(audit, limits);
      return intake.setQuota(tenant, change, audit);
    },
    async putToken(token, audit) {
      checkToken(token, limits);
      checkAuditInfo(audit, limits);
      return intake.putToken(token, audit);
    },
    async revokeToken(tenant, id, audit) {
      ifGiven(tenant, (of) => names({ tenant: of }));
      names({ id });
      checkAuditInfo(audit, limits);
      return intake.revokeToken(tenant, id, audit);
    },
    async recordAudit(tenant, action, audit, detail) {
      checkText("tenant", tenant, limits);
      names({ action });
      checkAuditInfo(audit, limits);
      return intake.recordAudit(tenant, action, audit, detail);
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

function checkPast(past: boolean | undefined, audit: AuditInfo | undefined): void {
  ifGiven(past, (flag) => checkFlag("past", flag));
  if (past !== true || audit !== undefined) return;
  const message = "to prune what a sink has not passed needs the operator's name and reason";
  throw new TapeError("TAPE_BAD_INPUT", message, { field: "audit" });
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
      const message = `unknown quota ${kind}; the quotas are ${quotaKinds.join(", ")}`;
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
    const message = `${bootstrapName} is reserved for the token in the server's settings; choose another name`;
    throw new TapeError("TAPE_BAD_INPUT", message, { field: "name" });
  }
  ifGiven(token.expiresInMs, (ms) => checkWhole("expiresInMs", ms, 1));
}

function checkScheduleAudit(audit: ScheduleAudit, limits: Limits): void {
  checkAuditInfo(audit, limits);
  checkList("changed", audit.changed);
  for (const field of audit.changed) checkText("changed", field, limits);
}

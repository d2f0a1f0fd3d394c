import { defined } from "../base/defined.ts";
import { TapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { AdminReadOps, AdminWriteOps, ApiToken, Page } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { readList } from "../store/read-all.ts";
import { checkReport } from "../store/validate/entry.ts";
import { assertOwn, isOwn, type RemoteContext } from "./context.ts";

/** `key` as in `remoteIntake`. */
export function remoteAdminWrites(deps: RemoteContext, key: string | undefined): AdminWriteOps {
  const { caller, limits } = deps;
  const once = { key };
  return {
    async putSchedule(tenant, { id, spec, nextAt, paused }, seen, audit) {
      assertOwn(deps, tenant);
      const from = seen && { version: seen.version, spec: seen.spec };
      const change = audit && { by: audit.by, reason: audit.reason, changed: [...audit.changed] };
      const body = { spec, nextAt, paused, ...defined({ seen: from, change }) };
      return caller.call("schedules.put", { params: { id }, body }, once);
    },
    async deleteSchedule(tenant, id) {
      if (!isOwn(deps, tenant)) return false;
      return (await caller.call("schedules.delete", { params: { id } }, once)).deleted;
    },
    async prune(tenant, endedBefore, limit, audit, past) {
      if (!isOwn(deps, tenant)) return 0;
      const reason = audit?.reason ?? "older than is kept";
      return (await caller.call("runs.prune", { body: { endedBefore, limit, reason, ...defined({ past }) } }, once))
        .pruned;
    },
    async setQuota(tenant, set, { reason, by }) {
      return caller.call("quotas.set", { body: { ...defined({ tenant }), set: defined(set), reason, by } });
    },
    // The server creates a token's secret and returns it once. A secret chosen by the caller could leak there.
    async putToken() {
      throw new TapeError(
        "TAPE_FORBIDDEN",
        "a remote store does not accept tokens: call tokens.create, and the server creates one",
      );
    },
    async revokeToken(tenant, id, { reason }) {
      if (!isOwn(deps, tenant)) throw notFound("token", id);
      const before = await findToken(deps, id);
      if (before === undefined) throw notFound("token", id);
      await caller.call("tokens.revoke", { params: { id }, body: { reason } });
      return (await findToken(deps, id)) ?? before;
    },
    async recordAudit() {
      throw new TapeError("TAPE_FORBIDDEN", "the server writes the audit of a remote store");
    },
    // The server itself records when a token is used.
    touchToken: async () => {},
    async reportProcess(tenant, report) {
      assertOwn(deps, tenant);
      checkReport(report, limits);
      const { owner, label, body } = report;
      await caller.call("store.reportProcess", { body: { owner, label, body } });
    },
    async removeProcess(tenant, owner) {
      if (isOwn(deps, tenant)) await caller.call("store.removeProcess", { body: { owner } });
    },
  };
}

export function remoteAdminReads(deps: RemoteContext): AdminReadOps {
  const { caller } = deps;
  const own = (tenant: string | undefined): boolean => isOwn(deps, tenant);
  return {
    token: (id) => findToken(deps, id),
    tokens: async (tenant, page) => (own(tenant) ? tokenPage(deps, page) : []),
    async quota(tenant) {
      return own(tenant) ? caller.call("quotas.get", {}) : { tenant, ...noQuota };
    },
    async quotas(page = {}) {
      const { quotas, more = false } = await caller.call("quotas.list", { query: defined(page) });
      return pageOf(quotas, more);
    },
    async processes(tenant) {
      return own(tenant) ? (await caller.call("processes.list", {})).processes : [];
    },
    settings: async () => (await caller.call("settings", {})).settings,
  };
}

const noLimits = { runs: null, bytes: null, schedules: null, streams: null };
/** The quota view of a tenant without quotas. */
const noQuota = { set: noLimits, limits: noLimits, used: { runs: 0, bytes: null, schedules: 0 } };

async function findToken(deps: RemoteContext, id: string): Promise<ApiToken | undefined> {
  const tokens = await readList(
    (above) => tokenPage(deps, { above }),
    (token) => token.id,
  );
  return tokens.find((token) => token.id === id);
}

/** Tokens without their hashes, which never leave the server. */
async function tokenPage(
  { caller }: RemoteContext,
  { above, limit }: { above?: string; limit?: number } = {},
): Promise<Page<ApiToken>> {
  const { tokens, more = false } = await caller.call("tokens.list", { query: defined({ above, limit }) });
  return pageOf(
    tokens.map((token) => ({ ...token, hash: "" })),
    more,
  );
}

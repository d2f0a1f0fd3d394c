import { defined } from "../base/defined.ts";
import { isTapeError } from "../model/errors.ts";
import { targetNotFound } from "../model/not-found.ts";
import type { JournalRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { FeedRecord, ReadOps, RunFilter } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { readList } from "../store/read-all.ts";
import { inParts, isOwn, type RemoteContext } from "./context.ts";

/** Every read of the contract. Another tenant's data is reported as absent, without a request. */
export function remoteRead(deps: RemoteContext): ReadOps {
  const { caller } = deps;
  const own = (tenant: string | undefined): boolean => isOwn(deps, tenant);
  return {
    async run(tenant, id) {
      if (!own(tenant)) return undefined;
      try {
        return await caller.call("runs.get", { params: { id } });
      } catch (error) {
        if (isTapeError(error, "TAPE_RUN_NOT_FOUND")) return undefined;
        throw error;
      }
    },
    async runs(tenant, filter = {}) {
      if (!own(tenant)) return [];
      const { runs, more = false } = await caller.call("runs.list", { query: runQuery(filter) });
      return pageOf(runs, more);
    },
    async progress(tenant, ids) {
      if (!own(tenant) || ids.length === 0) return [];
      const parts = inParts(ids, (part) => caller.call("store.progress", { body: { ids: part } }));
      return (await parts).flatMap(({ runs }) => runs);
    },
    async journal(tenant, target, { from, limit, inbox } = {}) {
      if (!own(tenant)) return [];
      const body = { target, ...defined({ from, limit, inbox }) };
      const { records, more = false } = await caller.call("store.journal", { body });
      return pageOf(records as JournalRecord[], more);
    },
    async effects(tenant, { run, item, role, root, below, from, status, minAgeMs, after, limit } = {}) {
      if (!own(tenant) || status?.length === 0) return [];
      const numbers = { item, root, below, from, minAgeMs, limit };
      const query = defined({ run, role, after, ...numbers, status: status && [...status] });
      const { effects, more = false } = await caller.call("effects.list", { query });
      return pageOf(effects as EffectRow[], more);
    },
    async gates(tenant, { run, open, after, limit } = {}) {
      if (!own(tenant)) return [];
      const { gates, more = false } = await caller.call("gates.list", { query: defined({ run, open, after, limit }) });
      return pageOf(gates, more);
    },
    async timers(tenant, { run, limit } = {}) {
      return own(tenant) ? (await caller.call("timers.list", { query: defined({ run, limit }) })).timers : [];
    },
    async dueTimers(limit, tenant) {
      return own(tenant) ? (await caller.call("store.dueTimers", { body: { limit } })).timers : [];
    },
    async agenda(tenant, workflows) {
      if (!own(tenant)) return [];
      const body = defined({ workflows: workflows && [...workflows] });
      const { items } = await caller.call("store.agenda", { body });
      return items.map(({ reactor, dueInMs, lateMs }) => ({ reactor, dueInMs, lateMs }));
    },
    async unserved(workflows, minLagMs, tenant) {
      if (!own(tenant)) return [];
      const body = { workflows: [...workflows], minLagMs };
      return (await caller.call("store.unserved", { body })).unserved;
    },
    async schedules(tenant, { above, limit } = {}) {
      if (!own(tenant)) return [];
      const { schedules, more = false } = await caller.call("schedules.list", { query: defined({ above, limit }) });
      return pageOf(schedules, more);
    },
    async dueSchedules(limit, tenant) {
      return own(tenant) ? (await caller.call("store.dueSchedules", { body: { limit } })).schedules : [];
    },
    async budgets(tenant, id) {
      return own(tenant) ? (await caller.call("runs.budgets", { params: { id } })).budgets : [];
    },
    async spend(tenant, limit) {
      if (!own(tenant)) return { budgets: [], units: [], more: false };
      return caller.call("budgets.list", { query: defined({ limit }) });
    },
    async rate(tenant, since, sizeMs, buckets) {
      if (own(tenant)) return (await caller.call("runs.rate", { query: { since, sizeMs, buckets } })).rate;
      return Array.from({ length: buckets }, (_, k) => ({ at: since + k * sizeMs, ...nothing }));
    },
    async businessKeyOwner(tenant, scope, businessKey) {
      return own(tenant) ? (await caller.call("businessKeys.get", { query: { scope, businessKey } })).claim : undefined;
    },
    async value(tenant, key) {
      return own(tenant) ? (await caller.call("values.get", { params: { key } })).value : undefined;
    },
    async values(tenant, prefix, limit, above) {
      if (!own(tenant)) return [];
      const query = { prefix, ...defined({ limit, above }) };
      const { values, more = false } = await caller.call("values.list", { query });
      return pageOf(values, more);
    },
    async valueHistory(tenant, key, after, limit) {
      if (!own(tenant)) return [];
      const query = { after, ...defined({ limit }) };
      const { values, more = false } = await caller.call("values.history", { params: { key }, query });
      return pageOf(values, more);
    },
    async lease(tenant, target) {
      return own(tenant) ? (await caller.call("store.lease", { body: { target } })).lease : undefined;
    },
    async leases(tenant, { held, limit } = {}) {
      return own(tenant) ? (await caller.call("leases.list", { query: defined({ held, limit }) })).leases : [];
    },
    async terms(tenant, target) {
      if (!own(tenant)) throw targetNotFound(target);
      return (await caller.call("store.terms", { body: { target } })).terms;
    },
    async feed(cursor, limit, tenant) {
      if (!own(tenant)) return { records: [], cursor: cursor ?? "" };
      const { records, blockedBy, ...page } = await caller.call("feed.page", { query: defined({ cursor, limit }) });
      return { ...page, records: records as FeedRecord[], ...defined({ blockedBy }) };
    },
    async audit(tenant, { before, limit } = {}) {
      if (!own(tenant)) return [];
      const { entries } = await caller.call("audit", { query: defined({ before, limit }) });
      return entries.map((entry) => ({ ...entry, tenant: deps.tenant }));
    },
    async token(id) {
      return (
        await readList(
          (above) => tokensOver(deps, { above }),
          (token) => token.id,
        )
      ).find((token) => token.id === id);
    },
    tokens: async (tenant, page) => (own(tenant) ? tokensOver(deps, page) : []),
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
    now: async () => (await caller.call("settings", {})).now,
  };
}

const noLimits = { runs: null, bytes: null, schedules: null, streams: null };
/** The quota view of a tenant without quotas. */
const noQuota = { set: noLimits, limits: noLimits, used: { runs: 0, bytes: null, schedules: 0 } };

/** Tokens without their hashes, which never leave the server. */
export async function tokensOver(
  { caller }: Pick<RemoteContext, "caller">,
  { above, limit }: { above?: string; limit?: number } = {},
) {
  const { tokens, more = false } = await caller.call("tokens.list", { query: defined({ above, limit }) });
  return pageOf(
    tokens.map((token) => ({ ...token, hash: "" })),
    more,
  );
}

const nothing = { started: 0, ended: 0, failed: 0, more: false } as const;

function runQuery({ status, ...rest }: RunFilter) {
  return defined({ ...rest, status: status && [...status] });
}

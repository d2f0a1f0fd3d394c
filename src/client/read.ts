import { defined } from "../base/defined.ts";
import { isTapeError } from "../model/errors.ts";
import type { JournalRecord } from "../model/records.ts";
import type { EffectRow } from "../model/rows.ts";
import type { ReadOps } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { remoteAdminReads } from "./admin.ts";
import { remoteAgenda } from "./agenda.ts";
import { remoteBlobReads } from "./blobs.ts";
import { remoteBuildReads } from "./builds.ts";
import { remoteCensus } from "./census.ts";
import { inParts, isOwn, type RemoteContext } from "./context.ts";
import { remoteFeed } from "./feed.ts";
import { remoteLists } from "./list.ts";
import { remoteQueueReads } from "./queues.ts";
import { remoteRetentionReads } from "./retention.ts";
import { remoteEventReads } from "./sinks.ts";
import { remoteStreamReads } from "./streams.ts";
import { remoteTalkReads } from "./talk.ts";

/** Every read of the contract. Another tenant's data is reported as absent, without a request. */
export function remoteRead(deps: RemoteContext): ReadOps {
  const { caller } = deps;
  const own = (tenant: string | undefined): boolean => isOwn(deps, tenant);
  return {
    ...remoteLists(deps),
    ...remoteAdminReads(deps),
    ...remoteQueueReads(deps),
    ...remoteBuildReads(deps),
    ...remoteAgenda(deps),
    ...remoteEventReads(deps),
    ...remoteRetentionReads(deps),
    ...remoteTalkReads(deps),
    ...remoteStreamReads(deps),
    ...remoteBlobReads(deps),
    ...remoteFeed(deps),
    ...remoteCensus(deps),
    async run(tenant, id) {
      if (!own(tenant)) return undefined;
      try {
        return await caller.call("runs.get", { params: { id } });
      } catch (error) {
        if (isTapeError(error, "TAPE_RUN_NOT_FOUND")) return undefined;
        throw error;
      }
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
    async effects(tenant, { run, item, role, root, below, from, status, minAgeMs, after, order, limit } = {}) {
      if (!own(tenant) || status?.length === 0) return [];
      const numbers = { item, root, below, from, minAgeMs, limit };
      const query = defined({ run, role, after, order, ...numbers, status: status && [...status] });
      const { effects, more = false } = await caller.call("effects.list", { query });
      return pageOf(effects as EffectRow[], more);
    },
    async businessKeyOwner(tenant, scope, businessKey) {
      if (!own(tenant)) return undefined;
      return (await caller.call("businessKeys.get", { query: { scope, businessKey } })).businessKey;
    },
    async value(tenant, key) {
      return own(tenant) ? (await caller.call("values.get", { params: { key } })).value : undefined;
    },
    async lease(tenant, target) {
      return own(tenant) ? (await caller.call("store.lease", { body: { target } })).lease : undefined;
    },
    now: async () => (await caller.call("settings", {})).now,
  };
}

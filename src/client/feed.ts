import { defined } from "../base/defined.ts";
import type { FeedRecord, ReadOps } from "../store/contract/store.ts";
import { isOwn, type RemoteContext } from "./context.ts";

/** The feed of the credential's tenant, and its end. */
export function remoteFeed(deps: RemoteContext): Pick<ReadOps, "feed" | "frontier"> {
  const { caller } = deps;
  return {
    async feed(cursor, limit, tenant) {
      if (!isOwn(deps, tenant)) return { records: [], cursor: cursor ?? "" };
      const { records, blockedBy, ...page } = await caller.call("feed.page", { query: defined({ cursor, limit }) });
      return { ...page, records: records as FeedRecord[], ...defined({ blockedBy }) };
    },
    async frontier(tenant) {
      return isOwn(deps, tenant) ? (await caller.call("feed.frontier", {})).cursor : "";
    },
  };
}

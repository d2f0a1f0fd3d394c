import { defined } from "../base/defined.ts";
import { notFound } from "../model/not-found.ts";
import type { ErasureOps, RetentionReadOps, RetentionWriteOps } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { assertOwn, isOwn, type RemoteContext } from "./context.ts";

export function remoteRetentionReads(deps: RemoteContext): RetentionReadOps {
  const { caller } = deps;
  return {
    async retention(tenant, withinMs) {
      if (!isOwn(deps, tenant)) return { due: 0, lagMs: 0, workflows: [] };
      return caller.call("retention.get", { query: defined({ withinMs }) });
    },
    async archived(tenant, { id, above, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const { runs, more = false } = await caller.call("archived.list", { query: defined({ id, above, limit }) });
      return pageOf(runs, more);
    },
  };
}

/** `key` as in `remoteIntake`. */
export function remoteRetentionWrites(deps: RemoteContext, key: string | undefined): ErasureOps & RetentionWriteOps {
  return {
    async eraseRun(tenant, id, { reason, by, tree, after }) {
      if (!isOwn(deps, tenant)) throw notFound("run", id);
      return deps.caller.call(
        "runs.erase",
        { params: { id }, body: { reason, by, ...defined({ tree, after }) } },
        { key },
      );
    },
    async requestRetention(tenant, { reason, by }) {
      assertOwn(deps, tenant);
      await deps.caller.call("retention.run", { body: { reason, by } }, { key });
    },
  };
}

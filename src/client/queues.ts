import { defined } from "../base/defined.ts";
import { isTapeError } from "../model/errors.ts";
import { notFound } from "../model/not-found.ts";
import type { AuditInfo, QueueReadOps, QueueWriteOps } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { assertOwn, isOwn, type RemoteContext } from "./context.ts";

/** `key` as in `remoteIntake`. */
export function remoteQueueWrites(deps: RemoteContext, key: string | undefined): QueueWriteOps {
  const { caller } = deps;
  const once = { key };
  const assertKnown = (tenant: string, name: string): void => {
    if (!isOwn(deps, tenant)) throw notFound("queue", name);
  };
  // The server adds the credential.
  const audited = ({ reason, by }: AuditInfo) => ({ reason, by });
  return {
    async putQueue(tenant, name, spec) {
      assertOwn(deps, tenant);
      return caller.call("queues.define", { params: { name }, body: { spec } }, once);
    },
    async changeQueue(tenant, name, change, audit) {
      assertKnown(tenant, name);
      return caller.call("queues.set", { params: { name }, body: { change, ...audited(audit) } }, once);
    },
    async resetQueue(tenant, name, audit) {
      assertKnown(tenant, name);
      return caller.call("queues.reset", { params: { name }, query: audited(audit) }, once);
    },
    async pauseQueue(tenant, name, paused, audit, partition) {
      assertKnown(tenant, name);
      const body = { ...audited(audit), ...defined({ key: partition }) };
      return caller.call(paused ? "queues.pause" : "queues.resume", { params: { name }, body }, once);
    },
  };
}

export function remoteQueueReads(deps: RemoteContext): QueueReadOps {
  const { caller } = deps;
  return {
    async queues(tenant, { above, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const { queues, more = false } = await caller.call("queues.list", { query: defined({ above, limit }) });
      return pageOf(queues, more);
    },
    async queuePartitions(tenant, name, { above, limit } = {}) {
      if (!isOwn(deps, tenant)) throw notFound("queue", name);
      const query = defined({ above, limit });
      const { keys, more = false } = await caller.call("queues.keys", { params: { name }, query });
      return pageOf(keys, more);
    },
    async queueSlots(tenant, name, { key, state, limit } = {}) {
      if (!isOwn(deps, tenant)) throw notFound("queue", name);
      const query = defined({ key, state, limit });
      const { runs, more = false } = await caller.call("queues.runs", { params: { name }, query });
      return pageOf(runs, more);
    },
    async queuePosition(tenant, id) {
      if (!isOwn(deps, tenant)) return undefined;
      try {
        const { position } = await caller.call("runs.queue", { params: { id } });
        // The server adds what process reports show. A store itself does not know processes.
        return position && { ...position, reasons: position.reasons.filter(({ why }) => why !== "unserved") };
      } catch (error) {
        if (isTapeError(error, "TAPE_RUN_NOT_FOUND")) return undefined;
        throw error;
      }
    },
  };
}

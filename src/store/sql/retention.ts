import type { Limits } from "../../model/limits.ts";
import type { RetentionOps } from "../contract/retention.ts";
import type { OpenSeal } from "../cursor-seal.ts";
import type { SqlBackend } from "./backend.ts";
import { queryRow } from "./plan.ts";
import * as plans from "./plans/retention.ts";

/** The reactor `retention` on an SQL store. */
export function retentionOf(driver: SqlBackend, limits: Limits, seal: OpenSeal): RetentionOps {
  const opener = async (tenant: string): Promise<(cursor: string) => string> => {
    const cursors = await seal();
    return (cursor) => cursors.open(tenant, cursor, driver.feedParts);
  };
  const identity: RetentionOps["identity"] = async () => {
    const row = (await driver.read(queryRow("retention.store"), undefined))!;
    return { store: row.store_id, epoch: Number(row.epoch), now: Number(row.now) };
  };
  return {
    identity,
    ended: async (tenant, after, until, limit) =>
      driver.read(plans.endedPlan(tenant, after, until, limit, limits), tenant),
    date: async (fence, policy, after, until, limit) =>
      driver.write(() => plans.datePlan(fence, policy, after, until, limit, limits), fence.tenant),
    async due(tenant, until, limit) {
      const open = await opener(tenant);
      return driver.read(plans.duePlan(tenant, until, limit, open), tenant);
    },
    async postpone(fence, roots, delayMs) {
      const { now } = await identity();
      return driver.write(() => plans.postponePlan(fence, roots, now + Math.ceil(delayMs)), fence.tenant);
    },
    records: async (tenant, journals, page) =>
      driver.read(plans.rawRecordsPlan(tenant, journals, page, limits), tenant),
    chunks: async (tenant, runs, after) => driver.read(plans.rawChunksPlan(tenant, runs, after, limits), tenant),
    blobs: async (tenant, runs, after) => driver.read(plans.rawBlobsPlan(tenant, runs, after, limits), tenant),
    async prune(fence, trees, file, checkpoint) {
      const open = await opener(fence.tenant);
      const { now } = await identity();
      return driver.write(() => plans.pruneArchivedPlan(fence, trees, file, checkpoint, now, open), fence.tenant);
    },
  };
}

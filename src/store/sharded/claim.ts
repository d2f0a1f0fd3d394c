import { isTapeError } from "../../model/errors.ts";
import type { Term } from "../../model/lease.ts";
import type { ClaimOps, FindRequest } from "../contract/store.ts";
import { split } from "./fenced.ts";
import type { Router } from "./router.ts";
import type { Shard } from "./shard.ts";

export function shardedClaim(router: Router): ClaimOps {
  return {
    acquire: (tenant, request) => router.write(tenant, (store) => store.claim.acquire(tenant, request)),
    async find(request) {
      if (request.tenant !== undefined) return findOf(router, request.tenant, request);
      // One after the other: together they would claim more than the caller can drive.
      const terms: Term[] = [];
      for (const shard of await latestFirst(router, request)) {
        const limit = request.limit - terms.length;
        if (limit <= 0) break;
        try {
          terms.push(...(await shard.call((store) => store.claim.find({ ...request, limit }))));
        } catch (error) {
          if (!isTapeError(error, "TAPE_STORE_UNREACHABLE")) throw error;
        }
      }
      return terms;
    },
    renew: (renewals) =>
      split(
        router,
        renewals,
        ({ fence }) => fence,
        (store, part) => store.claim.renew(part),
      ),
    callbackSecret: (fence) => router.fenced(fence.tenant, (store) => store.claim.callbackSecret(fence)),
    pause: (tenant, name, paused, by, reason, via) =>
      router.write(tenant, (store) => store.claim.pause(tenant, name, paused, by, reason, via)),
    async restored(reason, by, via, home) {
      // Each shard may have issued tokens that the restored one has lost: all start a new epoch.
      const place = home === undefined ? undefined : (await router.shardOf(home)).number;
      const results = await router.every((store, shard) =>
        place === undefined || shard.number === place
          ? store.claim.restored(reason, by, via, home)
          : store.claim.restored(reason),
      );
      return {
        epoch: Math.max(...results.map(({ epoch }) => epoch)),
        ended: results.reduce((sum, { ended }) => sum + ended, 0),
      };
    },
  };
}

/** The shards whose work has waited longest come first. Shards that are down are left out. */
async function latestFirst(router: Router, { nextReactor, workflows }: FindRequest): Promise<readonly Shard[]> {
  const { found } = await router.all((store) => store.read.agenda(undefined, workflows));
  const late = ({ value }: (typeof found)[number]): number =>
    Math.max(-1, ...value.filter(({ reactor }) => reactor === nextReactor).map(({ lateMs }) => lateMs));
  return found.toSorted((a, b) => late(b) - late(a)).map(({ shard }) => shard);
}

/** While the tenant moves, nothing of it can be claimed: that is no error of the caller. */
async function findOf(router: Router, tenant: string, request: Parameters<ClaimOps["find"]>[0]): Promise<Term[]> {
  const shard = await router.shardOf(tenant);
  try {
    return await shard.call((store) => store.claim.find(request));
  } catch (error) {
    if (!isTapeError(error, "TAPE_TENANT_MOVING")) throw error;
    await router.directory.refused(tenant, shard.number);
    return [];
  }
}

import { isTapeError } from "../../model/errors.ts";
import type { IntakeOps, Store } from "../contract/store.ts";
import { unknownCallback } from "../validate/arguments.ts";
import { forwarded } from "./forward.ts";
import { tokenPlace } from "./read-admin.ts";
import type { Router } from "./router.ts";

const ofTenant = [
  "putSchedule",
  "deleteSchedule",
  "prune",
  "recordAudit",
  "reportProcess",
  "removeProcess",
  "streamToken",
  "putQueue",
  "changeQueue",
  "resetQueue",
  "pauseQueue",
  "reportBuild",
  "setCurrentBuild",
  "settleLetters",
  "requestRetention",
  "createRuns",
  "signal",
  "cancel",
  "leaveEvidence",
  "fireTimer",
  "fireSchedule",
  "putValue",
  "deleteValue",
  "eraseRun",
] as const satisfies readonly (keyof IntakeOps)[];

/** `opsOf`: the intake of a shard, or the one that writes at most once for a key. */
export function shardedIntake(router: Router, opsOf: (store: Store) => IntakeOps): IntakeOps {
  return {
    ...forwarded(ofTenant, (tenant, work) => router.write(tenant, work), opsOf),
    async setQuota(tenant, change, audit) {
      if (tenant !== undefined) return router.write(tenant, (store) => opsOf(store).setQuota(tenant, change, audit));
      // The default of all tenants is a row of each shard. The audit entry is written where the home tenant is.
      const home = audit.home === undefined ? undefined : (await router.shardOf(audit.home)).number;
      const { home: _, ...elsewhere } = audit;
      const set = await router.every((store, shard) =>
        opsOf(store).setQuota(tenant, change, home === undefined || shard.number === home ? audit : elsewhere),
      );
      return set[0]!;
    },
    async putToken(token, audit) {
      const found = await tokenPlace(router, token.id);
      if (found !== undefined && found.token.tenant !== token.tenant)
        return found.shard.call((store) => opsOf(store).putToken(token, audit)); // refuses it: the id is taken
      return router.write(token.tenant, (store) => opsOf(store).putToken(token, audit));
    },
    async revokeToken(tenant, id, audit) {
      if (tenant !== undefined) return router.write(tenant, (store) => opsOf(store).revokeToken(tenant, id, audit));
      const found = await tokenPlace(router, id);
      const of = found?.token.tenant;
      if (of === undefined) return router.any((store) => opsOf(store).revokeToken(tenant, id, audit)); // refuses it
      return router.write(of, (store) => opsOf(store).revokeToken(tenant, id, audit));
    },
    async touchToken(id) {
      await router.all((store) => opsOf(store).touchToken(id));
    },
    async deliver(tenant, token, body) {
      if (tenant !== undefined) return router.write(tenant, (store) => opsOf(store).deliver(tenant, token, body));
      const { found, missing } = await router.all((store) =>
        opsOf(store)
          .deliver(tenant, token, body)
          .catch((error: unknown) => {
            if (isTapeError(error, "TAPE_NOT_FOUND")) return undefined;
            throw error;
          }),
      );
      const taken = found.find(({ value }) => value !== undefined)?.value;
      if (taken !== undefined) return taken;
      throw missing.length > 0 ? router.unreachable(missing) : unknownCallback();
    },
  };
}

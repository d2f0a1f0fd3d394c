import { defined } from "../base/defined.ts";
import type { BuildClaim } from "../model/build.ts";
import { notFound } from "../model/not-found.ts";
import type { BuildReadOps, BuildWriteOps } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { assertOwn, isOwn, type RemoteContext } from "./context.ts";

/** A claim as a request sends it. */
export const claimOf = ({ build, pinned, leaves }: BuildClaim) => ({
  build,
  pinned: [...pinned],
  ...(leaves === undefined || leaves.length === 0 ? {} : { leaves: [...leaves] }),
});

/** `key` as in `remoteIntake`. */
export function remoteBuildWrites(deps: RemoteContext, key: string | undefined): BuildWriteOps {
  const { caller } = deps;
  return {
    async reportBuild(tenant, build, workflows) {
      assertOwn(deps, tenant);
      return caller.call("store.reportBuild", { body: { build, workflows: [...workflows] } });
    },
    async setCurrentBuild(tenant, build, { reason, by }) {
      if (!isOwn(deps, tenant)) throw notFound("build", build);
      // The server adds the credential.
      return caller.call("builds.current", { params: { build }, body: { reason, by } }, { key });
    },
  };
}

export function remoteBuildReads(deps: RemoteContext): BuildReadOps {
  const { caller } = deps;
  return {
    async builds(tenant, { build, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const { builds, more = false } = await caller.call("builds.list", { query: defined({ build, limit }) });
      return pageOf(
        builds.map(({ processes: _processes, ...view }) => view),
        more,
      );
    },
    async buildRuns(tenant, build, { above, limit } = {}) {
      if (!isOwn(deps, tenant)) return [];
      const query = defined({ above, limit });
      const { runs, more = false } = await caller.call("builds.runs", { params: { build }, query });
      return pageOf(runs, more);
    },
    async isDrained(tenant, build) {
      if (!isOwn(deps, tenant)) return true;
      return (await caller.call("builds.drained", { params: { build } })).drained;
    },
  };
}

import type { CensusOps } from "../store/contract/store.ts";
import { isOwn, type RemoteContext } from "./context.ts";

/** Figures of the credential's tenant. Another tenant has nothing. */
export function remoteCensus(deps: RemoteContext): CensusOps {
  const { caller } = deps;
  return {
    async due(reactor, cap, tenant) {
      return isOwn(deps, tenant) ? (await caller.call("store.due", { body: { reactor, cap } })).due : 0;
    },
    async census(tenant) {
      if (!isOwn(deps, tenant)) return { reactors: [], runs: [], inDoubt: [], held: [], feedBlockedMs: 0 };
      return caller.call("census", {});
    },
  };
}

import { defined } from "../base/defined.ts";
import type { ReadOps } from "../store/contract/store.ts";
import { claimOf } from "./builds.ts";
import { isOwn, type RemoteContext } from "./context.ts";

/** What is due, for the reactors of a connected process. */
export function remoteAgenda(deps: RemoteContext): Pick<ReadOps, "agenda" | "unserved" | "dueTimers" | "dueSchedules"> {
  const { caller } = deps;
  const own = (tenant: string | undefined): boolean => isOwn(deps, tenant);
  return {
    async agenda(tenant, workflows, queues, build) {
      if (!own(tenant)) return [];
      const names = { workflows: workflows && [...workflows], queues: queues && [...queues] };
      const body = defined({ ...names, build: build && claimOf(build) });
      const { items } = await caller.call("store.agenda", { body });
      return items.map(({ reactor, dueInMs, lateMs }) => ({ reactor, dueInMs, lateMs }));
    },
    async unserved(workflows, minLagMs, tenant, build) {
      if (!own(tenant)) return [];
      const body = { workflows: [...workflows], minLagMs, ...defined({ build: build && claimOf(build) }) };
      return (await caller.call("store.unserved", { body })).unserved;
    },
    async dueTimers(limit, tenant) {
      return own(tenant) ? (await caller.call("store.dueTimers", { body: { limit } })).timers : [];
    },
    async dueSchedules(limit, tenant) {
      return own(tenant) ? (await caller.call("store.dueSchedules", { body: { limit } })).schedules : [];
    },
  };
}

import type { LeaseView } from "../../model/lease.ts";
import { notFound } from "../../model/not-found.ts";
import type { leases } from "../../protocol/routes/leases.ts";
import { actorOf, auditInfoOf, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";
import { follow, streamPage } from "../streams.ts";

export function leaseHandlers({ store, clock, operators }: ServerDeps): HandlersOf<typeof leases> {
  const { read } = store;
  const existing = async (tenant: string, name: string): Promise<LeaseView> => {
    const lease = await read.lease(tenant, { name });
    if (lease === undefined) throw notFound("lease", name);
    return lease;
  };
  return {
    async "leases.list"({ query }, { tenant }) {
      return listed("leases", await read.leases(tenant, query));
    },
    "leases.get": ({ params: { name } }, { tenant }) => existing(tenant, name),
    async "leases.terms"({ params: { name } }, { tenant }) {
      return { terms: await read.terms(tenant, { name }) };
    },
    async "leases.follow"({ params: { name }, query }, { tenant, signal }) {
      const { journal } = await existing(tenant, name);
      let from = query.from ?? 1;
      return follow({
        ...{ store, clock, signal },
        concerns: (wake) => wake.of === "any" || (wake.of === "journal" && wake.journal === journal),
        page: async () => {
          const records = await read.journal(tenant, { name }, { from, limit: streamPage });
          from = (records.at(-1)?.seq ?? from - 1) + 1;
          return records;
        },
      });
    },
    async "processes.list"(_call, { tenant }) {
      return { processes: await read.processes(tenant) };
    },
    async "leases.takeover"({ params: { name }, body }, who) {
      await existing(who.tenant, name);
      await operators.of(who.tenant).preempt({ name }, { ...body, ...auditInfoOf(who, body) });
      return {};
    },
    async "leases.pause"({ params: { name }, body }, who) {
      await store.claim.pause(who.tenant, name, true, actorOf(who, body.by), body.reason, who.via);
      return {};
    },
    async "leases.resume"({ params: { name }, body }, who) {
      await store.claim.pause(who.tenant, name, false, actorOf(who, body.by), body.reason, who.via);
      return {};
    },
  };
}

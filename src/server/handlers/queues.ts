import { defined } from "../../base/defined.ts";
import { explainQueue } from "../../engine/served.ts";
import { notFound } from "../../model/not-found.ts";
import type { queues as routes } from "../../protocol/routes/queues.ts";
import { auditInfoOf, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";

export function queueHandlers({ store }: ServerDeps): HandlersOf<typeof routes> {
  const { read } = store;
  return {
    async "queues.list"({ query }, { tenant }) {
      return listed("queues", await read.queues(tenant, query));
    },
    async "queues.keys"({ params: { name }, query }, { tenant }) {
      return listed("keys", await read.queuePartitions(tenant, name, query));
    },
    async "queues.runs"({ params: { name }, query }, { tenant }) {
      return listed("runs", await read.queueSlots(tenant, name, query));
    },
    async "runs.queue"({ params: { id } }, { tenant }) {
      const position = await explainQueue(store, tenant, id);
      if (position !== undefined) return { position };
      if ((await read.run(tenant, id)) === undefined) throw notFound("run", id);
      return {};
    },
    async "queues.define"({ params: { name }, body: { spec } }, who) {
      const { version, fresh, replaced } = await who.intake.putQueue(who.tenant, name, spec);
      return { name, version, fresh, ...defined({ replaced }) };
    },
    "queues.pause": ({ params: { name }, body }, who) =>
      who.intake.pauseQueue(who.tenant, name, true, auditInfoOf(who, body), body.key),
    "queues.resume": ({ params: { name }, body }, who) =>
      who.intake.pauseQueue(who.tenant, name, false, auditInfoOf(who, body), body.key),
    "queues.set": ({ params: { name }, body }, who) =>
      who.intake.changeQueue(who.tenant, name, body.change, auditInfoOf(who, body)),
    "queues.reset": ({ params: { name }, query }, who) =>
      who.intake.resetQueue(who.tenant, name, auditInfoOf(who, query)),
  };
}

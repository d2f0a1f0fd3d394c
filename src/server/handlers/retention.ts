import { defined } from "../../base/defined.ts";
import type { retention as routes } from "../../protocol/routes/retention.ts";
import { auditInfoOf, type HandlersOf, listed, type ServerDeps } from "../handler-types.ts";

export function retentionHandlers({ store: { read } }: ServerDeps): HandlersOf<typeof routes> {
  return {
    async "retention.get"({ query }, { tenant }) {
      const { workflows, state, ...view } = await read.retention(tenant, query.withinMs);
      return { ...view, workflows: [...workflows], ...(state && { state }) };
    },
    async "retention.run"({ body }, who) {
      await who.intake.requestRetention(who.tenant, auditInfoOf(who, body));
      return {};
    },
    async "runs.erase"({ params: { id }, body: { tree, after, ...body } }, who) {
      const request = { ...auditInfoOf(who, body), ...defined({ tree, after }) };
      const { copies, ...step } = await who.intake.eraseRun(who.tenant, id, request);
      return { ...step, ...(copies && { copies: [...copies] }) };
    },
    async "archived.list"({ query }, { tenant }) {
      return listed("runs", await read.archived(tenant, query));
    },
  };
}

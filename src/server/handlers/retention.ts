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
    async "archived.list"({ query }, { tenant }) {
      return listed("runs", await read.archived(tenant, query));
    },
  };
}

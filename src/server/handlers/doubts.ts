import type { doubts } from "../../protocol/routes/doubts.ts";
import { authorOf, type HandlersOf, type ServerGround } from "../handler.ts";

export function doubtHandlers({ store, operator }: ServerGround): HandlersOf<typeof doubts> {
  const { read } = store;
  return {
    async "effects.list"({ query }, { tenant }) {
      return { effects: await read.effects(tenant, query) };
    },
    async "effects.resolve"({ params: { id, pos, sub }, body }, who) {
      const { resolution, reason } = body;
      await operator.resolve(who.tenant, {
        ...{ run: id, pos, sub, resolution, reason },
        by: authorOf(who, body.by),
      });
      return {};
    },
    async "gates.list"({ query }, { tenant }) {
      return { gates: await read.gates(tenant, query) };
    },
    async "timers.list"({ query }, { tenant }) {
      return { timers: await read.timers(tenant, query) };
    },
    async "claims.get"({ query: { scope, businessKey } }, { tenant }) {
      return { claim: await read.claimOf(tenant, scope, businessKey) };
    },
  };
}

import type { doubts } from "../../protocol/routes/doubts.ts";
import { doubtOf } from "../doubt.ts";
import { actOf, type HandlersOf, type ServerGround } from "../handler.ts";

const usualDoubts = 50;
const mostDoubts = 200;

export function doubtHandlers({ store, operator }: ServerGround): HandlersOf<typeof doubts> {
  const { read } = store;
  return {
    async "effects.list"({ query }, { tenant }) {
      return { effects: await read.effects(tenant, query) };
    },
    async "doubts.list"({ query: { limit = usualDoubts, ...query } }, { tenant }) {
      const most = Math.min(limit, mostDoubts);
      const found = await read.effects(tenant, { ...query, status: ["UNKNOWN", "STUCK"], limit: most + 1 });
      const oldest = found.slice(0, most).toSorted((a, b) => a.changedAt - b.changedAt);
      const doubts = await Promise.all(oldest.map((effect) => doubtOf(read, tenant, effect)));
      return { doubts: doubts.filter((one) => one !== undefined), more: found.length > most };
    },
    async "effects.resolve"({ params: { id, pos, sub }, body }, who) {
      const { resolution, reason } = body;
      await operator.resolve(who.tenant, {
        ...{ run: id, pos, sub, resolution, reason },
        ...actOf(who, body),
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

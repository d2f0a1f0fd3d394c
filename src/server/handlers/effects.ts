import type { effects } from "../../protocol/routes/effects.ts";
import { effectCursor, gateCursor } from "../../store/list-cursors.ts";
import { auditInfoOf, type HandlersOf, listed, nextOf, type ServerDeps } from "../handler-types.ts";
import { inDoubtDetails } from "../in-doubt.ts";

const defaultInDoubt = 50;
const maxInDoubt = 200;

export function effectHandlers({ store, operators }: ServerDeps): HandlersOf<typeof effects> {
  const { read } = store;
  return {
    async "effects.list"({ query }, { tenant }) {
      const page = await read.effects(tenant, query);
      // Of one run's effects the next page begins at a position, which the caller has.
      const all = (query.run ?? query.item ?? query.root) === undefined;
      return { ...listed("effects", page), ...(all && nextOf(page, effectCursor)) };
    },
    async "inDoubt.list"({ query: { limit = defaultInDoubt, ...query } }, { tenant }) {
      const most = Math.min(limit, maxInDoubt);
      const found = await read.effects(tenant, { ...query, status: ["UNKNOWN", "STUCK"], limit: most + 1 });
      const oldest = found.slice(0, most).toSorted((a, b) => a.changedAt - b.changedAt);
      // One after the other: each reads journals, which may be long.
      const doubts: NonNullable<Awaited<ReturnType<typeof inDoubtDetails>>>[] = [];
      let bytes = 0;
      for (const effect of oldest) {
        if (bytes >= store.limits.pageBytes) break;
        const one = await inDoubtDetails(read, tenant, effect);
        if (one === undefined) continue;
        doubts.push(one);
        bytes += JSON.stringify(one, (_key, value) => (typeof value === "bigint" ? String(value) : value)).length;
      }
      const whole = doubts.length === oldest.length || bytes < store.limits.pageBytes;
      return { inDoubt: doubts, more: !whole || found.length > most || found.more === true };
    },
    async "effects.resolve"({ params: { id, pos, sub }, body }, who) {
      const { resolution, reason } = body;
      await operators.of(who.tenant).resolve({
        ...{ run: id, pos, sub, resolution, reason },
        ...auditInfoOf(who, body),
      });
      return {};
    },
    async "gates.list"({ query }, { tenant }) {
      const page = await read.gates(tenant, query);
      return { ...listed("gates", page), ...nextOf(page, gateCursor) };
    },
    async "timers.list"({ query }, { tenant }) {
      return { timers: await read.timers(tenant, query) };
    },
    async "businessKeys.get"({ query: { scope, businessKey } }, { tenant }) {
      return { businessKey: await read.businessKeyOwner(tenant, scope, businessKey) };
    },
  };
}

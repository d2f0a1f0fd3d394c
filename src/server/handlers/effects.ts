import { resolutionFromWire } from "../../operator/resolve.ts";
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
      // The next page of one run's effects starts at a position, which the caller knows.
      const all = query.order === "desc" || (query.run ?? query.item ?? query.root) === undefined;
      return { ...listed("effects", page), ...(all && nextOf(page, effectCursor)) };
    },
    async "inDoubt.list"({ query: { limit = defaultInDoubt, ...query } }, { tenant }) {
      const max = Math.min(limit, maxInDoubt);
      const found = await read.effects(tenant, { ...query, status: ["UNKNOWN", "STUCK"], limit: max + 1 });
      const oldest = found.slice(0, max).toSorted((a, b) => a.changedAt - b.changedAt);
      // Sequentially: each reads journals, which may be long.
      const inDoubt: NonNullable<Awaited<ReturnType<typeof inDoubtDetails>>>[] = [];
      let bytes = 0;
      for (const effect of oldest) {
        if (bytes >= store.limits.pageBytes) break;
        const details = await inDoubtDetails(read, tenant, effect);
        if (details === undefined) continue;
        inDoubt.push(details);
        bytes += JSON.stringify(details, (_key, value) => (typeof value === "bigint" ? String(value) : value)).length;
      }
      const whole = inDoubt.length === oldest.length || bytes < store.limits.pageBytes;
      return { inDoubt, more: !whole || found.length > max || found.more === true };
    },
    async "effects.resolve"({ params: { id, pos, sub }, body }, who) {
      const { reason } = body;
      const resolution = resolutionFromWire(body.resolution);
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

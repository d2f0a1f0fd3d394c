import { defined } from "../base/defined.ts";
import type { LeaseView } from "../model/lease.ts";
import { targetNotFound } from "../model/not-found.ts";
import type { ListOps, Page, RunFilter } from "../store/contract/store.ts";
import { pageOf } from "../store/page.ts";
import { isOwn, type RemoteContext } from "./context.ts";

export function remoteLists(deps: RemoteContext): ListOps {
  const { caller } = deps;
  const own = (tenant: string | undefined): boolean => isOwn(deps, tenant);
  return {
    async runs(tenant, filter = {}) {
      if (!own(tenant)) return [];
      const { runs, more = false } = await caller.call("runs.list", { query: runQuery(filter) });
      return pageOf(runs, more);
    },
    async gates(tenant, { run, open, after, limit } = {}) {
      if (!own(tenant)) return [];
      const { gates, more = false } = await caller.call("gates.list", { query: defined({ run, open, after, limit }) });
      return pageOf(gates, more);
    },
    async timers(tenant, { run, limit } = {}) {
      return own(tenant) ? (await caller.call("timers.list", { query: defined({ run, limit }) })).timers : [];
    },
    async schedules(tenant, { above, limit } = {}) {
      if (!own(tenant)) return [];
      const { schedules, more = false } = await caller.call("schedules.list", { query: defined({ above, limit }) });
      return pageOf(schedules, more);
    },
    async budgets(tenant, id) {
      return own(tenant) ? (await caller.call("runs.budgets", { params: { id } })).budgets : [];
    },
    async spend(tenant, limit) {
      if (!own(tenant)) return { budgets: [], units: [], more: false };
      return caller.call("budgets.list", { query: defined({ limit }) });
    },
    async rate(tenant, since, sizeMs, buckets) {
      if (own(tenant)) return (await caller.call("runs.rate", { query: { since, sizeMs, buckets } })).rate;
      return Array.from({ length: buckets }, (_, k) => ({ at: since + k * sizeMs, ...nothing }));
    },
    async values(tenant, prefix, limit, above, order) {
      if (!own(tenant)) return [];
      const query = { prefix, ...defined({ limit, above, order }) };
      const { values, more = false } = await caller.call("values.list", { query });
      return pageOf(values, more);
    },
    async valueHistory(tenant, key, after, limit) {
      if (!own(tenant)) return [];
      const query = { after, ...defined({ limit }) };
      const { values, more = false } = await caller.call("values.history", { params: { key }, query });
      return pageOf(values, more);
    },
    async leases(tenant, { held, limit, kind, names, prefix, above } = {}) {
      if (!own(tenant) || names?.length === 0) return [];
      const list = async (some: readonly string[] | undefined): Promise<Page<LeaseView>> => {
        const query = defined({ held, limit, kind, prefix, above, names: some && [...some] });
        const { leases, more = false } = await caller.call("leases.list", { query });
        return pageOf(leases, more);
      };
      if (names === undefined) return list(undefined);
      const found: LeaseView[] = [];
      for (const some of fitting(names.toSorted())) found.push(...(await list(some)));
      return pageOf(found.slice(0, limit), limit !== undefined && found.length >= limit);
    },
    async terms(tenant, target) {
      if (!own(tenant)) throw targetNotFound(target);
      return (await caller.call("store.terms", { body: { target } })).terms;
    },
    async audit(tenant, { before, limit } = {}) {
      if (!own(tenant)) return [];
      const { entries } = await caller.call("audit", { query: defined({ before, limit }) });
      return entries.map((entry) => ({ ...entry, tenant: deps.tenant }));
    },
  };
}

const nothing = { started: 0, ended: 0, failed: 0, more: false } as const;

function runQuery({ status, labels, ...rest }: RunFilter) {
  const values = Object.entries(labels ?? {}).map(([key, of]) => [key, typeof of === "string" ? [of] : [...of]]);
  return defined({
    ...rest,
    status: status && [...status],
    labels: values.length === 0 ? undefined : (Object.fromEntries(values) as Record<string, string[]>),
  });
}

/** Half of what the server takes in one address. */
const maxAddress = 8_192;

/** The names in parts, each of which fits into the address of one call. */
function* fitting(names: readonly string[]): Generator<readonly string[]> {
  let part: string[] = [];
  let length = 0;
  for (const name of names) {
    const more = encodeURIComponent(encodeURIComponent(name)).length + 3;
    if (part.length > 0 && length + more > maxAddress) {
      yield part;
      [part, length] = [[], 0];
    }
    part.push(name);
    length += more;
  }
  if (part.length > 0) yield part;
}

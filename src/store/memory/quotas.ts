import { sizeOf } from "../../base/codec.ts";
import { everyTenant, type QuotaKind, quotaKinds } from "../../model/quota.ts";
import type { QueryResult, Row } from "../sql/plan.ts";
import { changed, compare, none, page, row, rows, type Statements, type Times } from "./statement.ts";
import type { QuotaRow, Tables } from "./tables.ts";

type Of = { readonly tenant: string };

const blank = {
  ...{ runs: null, bytes: null, schedules: null, streams: null },
  ...{ runs_used: 0, runs_at: 0, bytes_used: 0, metered: null, metered_at: 0 },
} as const;

/** Whether a limit is set for this tenant or for all of them. */
export const limited = (t: Tables, tenant: string, of: (quota: QuotaRow) => number | null): boolean =>
  [tenant, everyTenant].some((one) => {
    const quota = t.quotas.get(one);
    return quota !== undefined && of(quota) !== null;
  });

/** With the default, as the SQL stores join it. */
function withDefault(t: Tables, quota: QuotaRow): Row {
  const all = t.quotas.get(everyTenant);
  const defaults = quotaKinds.map((kind) => [`default_${kind}`, all?.[kind] ?? null]);
  return { ...quota, ...Object.fromEntries(defaults), metered: all?.metered ?? null, metered_at: all?.metered_at ?? 0 };
}

const withUse = (t: Tables, quota: QuotaRow): Row => ({
  ...withDefault(t, quota),
  open_runs: t.runs.by.counted(quota.tenant).length,
  all_schedules: t.schedules.by.tenant(quota.tenant).length,
});

function seen(t: Tables, p: Of, { at }: Times): QueryResult {
  const quota = t.quotas.get(p.tenant);
  return row(quota && { ...withDefault(t, quota), at });
}

export const quotas = {
  "quota.lock": seen,

  "quota.seen": seen,

  "quota.create"(t, { tenant }: Of) {
    if (t.quotas.get(tenant) === undefined) t.quotas.insert({ tenant, ...blank });
    return changed(1);
  },

  "quota.set"(t, p: Of & Readonly<Record<QuotaKind, number | null>>) {
    const { tenant, runs, bytes, schedules, streams } = p;
    t.quotas.update(t.quotas.get(tenant)!, { runs, bytes, schedules, streams });
    return changed(1);
  },

  "quota.use"(t, p: Of & { used: number; fresh: boolean }, { at }) {
    t.quotas.update(t.quotas.get(p.tenant)!, { runs_used: p.used, ...(p.fresh && { runs_at: at }) });
    return changed(1);
  },

  "quota.recount": (t, p: Of) =>
    changed(
      t.quotas.updateAll(
        t.quotas.all().filter(({ tenant }) => p.tenant === everyTenant || p.tenant === tenant),
        { runs_at: 0 },
      ),
    ),

  "quota.open": (t, p: Of) => row({ n: t.runs.by.counted(p.tenant).length }),
  "quota.get": (t, { tenant }: Of) => row(withUse(t, t.quotas.get(tenant) ?? { tenant, ...blank })),

  "quota.list"(t, p: { above: string; limit: number }) {
    const found = t.quotas.all().filter(({ tenant }) => p.above === "" || compare(tenant, p.above) > 0);
    return rows(page(found, p.limit, ({ tenant }) => tenant).map((quota) => withUse(t, quota)));
  },

  "quota.range"(t, p: { after: number; limit: number }) {
    const found = t.runs.all().filter(({ journal }) => journal > p.after);
    return row({ until: page(found, p.limit, ({ journal }) => journal).at(-1)?.journal ?? null });
  },

  "quota.flag"(t, p: { after: number; until: number }) {
    const found = t.runs
      .all()
      .filter(
        ({ journal, ended_at, counted }) => journal > p.after && journal <= p.until && ended_at === null && !counted,
      )
      .filter(({ tenant }) => limited(t, tenant, ({ runs, bytes }) => runs ?? bytes));
    return changed(t.runs.updateAll(found, { counted: true }));
  },

  "usage.begin"(t) {
    const all = t.quotas.get(everyTenant)!;
    if (all.metered === null) t.quotas.update(all, { metered: 0 });
    return changed(1);
  },

  "usage.lock"(t) {
    const metered = t.quotas.get(everyTenant)?.metered ?? null;
    return metered === null ? none : row({ metered });
  },

  "usage.edge"(t, p: { after: number; limit: number }) {
    const last = t.meta.get(1)?.last_id ?? 0;
    return row({ edge: Math.min(last, p.after + p.limit), last });
  },

  "usage.sum"(t, p: { after: number; edge: number }) {
    const sums = new Map<string, number>();
    for (let id = p.after + 1; id <= p.edge; id++) {
      for (const record of t.records.by.id(id)) {
        const lease = t.leases.get(Math.abs(record.journal));
        if (lease !== undefined) sums.set(lease.tenant, (sums.get(lease.tenant) ?? 0) + sizeOf(record.body));
      }
    }
    return rows([...sums].map(([tenant, bytes]) => ({ tenant, bytes })));
  },

  "usage.add"(t, p: Of & { bytes: number }) {
    const quota = t.quotas.get(p.tenant) ?? t.quotas.insert({ tenant: p.tenant, ...blank });
    t.quotas.update(quota, { bytes_used: quota.bytes_used + p.bytes });
    return changed(1);
  },

  "usage.moved"(t, p: { edge: number; fresh: boolean }, { at }) {
    t.quotas.update(t.quotas.get(everyTenant)!, { metered: p.edge, ...(p.fresh && { metered_at: at }) });
    return changed(1);
  },
} satisfies Statements;

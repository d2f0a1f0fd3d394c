import { tenantOf } from "./leases.ts";
import { changed, compare, type Do, type DoAs, none, page, row, rows, type Statements } from "./statement.ts";
import { keyOf } from "./table.ts";
import type { Tables } from "./tables.ts";

type Place = { readonly tenant: string; readonly key: string };

/** Values, budgets and claims of business keys. */
export const values = {
  "value.put"(t, p: Do<"value.put">, { at }) {
    const { key, version, value } = p;
    const tenant = p.tenant ?? tenantOf(t, p.source);
    const before = t.values.get(keyOf(tenant, key));
    if ((before?.version ?? 0) !== version - 1) return none;
    if (before === undefined) t.values.insert({ tenant, key, version, value, at });
    else t.values.update(before, { version, value, at });
    return changed(1);
  },

  "value.log"(t, p: Do<"value.log">, { at }) {
    const { key, version, value } = p;
    t.valueLog.insert({ tenant: p.tenant ?? tenantOf(t, p.source), key, version, value, at });
    return changed(1);
  },

  "value.forget"(t, p: Do<"value.log">) {
    const log = t.valueLog.by.key(keyOf(p.tenant ?? tenantOf(t, p.source), p.key));
    return changed(t.valueLog.deleteAll(log.filter(({ version }) => version <= p.through)));
  },

  "value.get": (t, p: Place) => row(t.values.get(keyOf(p.tenant, p.key))),

  "value.list"(t, p: { tenant: string; prefix: string; above: string; limit: number }) {
    const found = t.values.by
      .tenant(p.tenant)
      .filter(({ key, value }) => key.startsWith(p.prefix) && value !== null && compare(key, p.above) > 0);
    return rows(page(found, p.limit, ({ key }) => key));
  },

  "value.history"(t, p: Place & { after: number; limit: number }) {
    const found = t.valueLog.by.key(keyOf(p.tenant, p.key)).filter(({ version }) => version > p.after);
    return rows(page(found, p.limit, ({ version }) => version));
  },

  "budget.create"(t, p: Do<"budget.create">) {
    const { run, unit, cap } = p;
    t.budgets.insert({ run, unit, cap, reserved: 0, spent: 0 });
    return changed(1);
  },

  "budget.reserve"(t, p: DoAs<"budget.reserve">) {
    const budget = t.budgets.get(keyOf(p.run, p.unit));
    if (budget === undefined || t.runs.get(p.run)?.tenant !== p.tenant || !sameTree(t, p.by, p.run)) return none;
    const reserved = budget.reserved + p.amount;
    if (reserved + budget.spent > budget.cap) return none;
    t.budgets.update(budget, { reserved });
    return changed(1);
  },

  "budget.charge"(t, p: DoAs<"budget.charge">) {
    const budget = t.budgets.get(keyOf(p.run, p.unit));
    if (budget === undefined || t.runs.get(p.run)?.tenant !== p.tenant || !sameTree(t, p.by, p.run)) return none;
    const reserved = budget.reserved - p.reserved;
    const spent = Math.min(budget.spent + p.spent, Number.MAX_SAFE_INTEGER);
    if (reserved < 0) return none;
    t.budgets.update(budget, { reserved, spent });
    return changed(1);
  },

  "budget.list": (t, p: { run: number }) =>
    rows(page(t.budgets.by.run(p.run), Number.POSITIVE_INFINITY, ({ unit }) => unit)),

  "budget.open"(t, p: { tenant: string; limit: number }) {
    const ours = t.budgets.all().filter(({ run }) => t.runs.get(run)?.tenant === p.tenant);
    return rows(
      page(ours, p.limit, ({ run }) => -run).map((budget) => {
        const { id, workflow, phase, ended_at } = t.runs.get(budget.run)!;
        const { owner, next_reactor } = t.leases.get(budget.run)!;
        return {
          ...budget,
          run_id: id,
          workflow,
          phase,
          ended_at,
          lease_owner: owner,
          lease_next_reactor: next_reactor,
        };
      }),
    );
  },

  "business_key.claim"(t, p: Do<"business_key.claim">) {
    const { run, pos, scope, businessKey } = p;
    const tenant = t.runs.get(run)?.tenant;
    if (tenant === undefined || t.claims.get(keyOf(tenant, scope, businessKey)) !== undefined) return none;
    t.claims.insert({ tenant, scope, business_key: businessKey, run, pos });
    return changed(1);
  },

  "business_key.drop": (t, p: Do<"business_key.drop">) =>
    changed(t.claims.deleteAll(t.claims.by.run(p.run).filter(({ pos }) => pos === p.pos))),

  "business_key.find"(t, p: { tenant: string; scope: string; businessKey: string }) {
    const claim = t.claims.get(keyOf(p.tenant, p.scope, p.businessKey));
    return row(claim && { ...claim, run_id: t.runs.get(claim.run)!.id });
  },

  "business_keys.sweep"(t, p: Do<"business_keys.sweep">) {
    const withdrawn = ({ run, pos }: { run: number; pos: number }): boolean =>
      t.effects.get(keyOf(run, pos, 0))?.status === "WITHDRAWN";
    return changed(t.claims.deleteAll(t.claims.by.run(p.run).filter(withdrawn)));
  },
} satisfies Statements;

/** Only runs of one tree draw on each other's budgets. */
function sameTree(t: Tables, by: number, run: number): boolean {
  const root = t.runs.get(by)?.root;
  return root !== undefined && root === t.runs.get(run)?.root;
}

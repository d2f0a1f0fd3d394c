import type { Change } from "../src/model/changes.ts";
import type { BudgetState, ClaimState, RunState } from "./projection-rows.ts";

/** The tables of business keys and budgets, for the independent interpretation of changes. */
interface KeyTables {
  readonly runs: ReadonlyMap<number, Readonly<RunState>>;
  readonly claims: Map<string, Readonly<ClaimState>>;
  readonly claimed: Map<string, Readonly<ClaimState>>;
  readonly budgets: Map<string, Readonly<BudgetState>>;
}

export function claimKey(tables: KeyTables, change: Extract<Change, { do: "business_key.claim" }>): boolean {
  const { run, pos, scope, businessKey } = change;
  const tenant = tables.runs.get(run)?.tenant ?? "";
  const key = JSON.stringify([tenant, scope, businessKey]);
  if (tables.claims.has(key)) return false;
  const claim = { tenant, run, pos, scope, businessKey };
  tables.claims.set(key, claim);
  tables.claimed.set(key, claim);
  return true;
}

/** A reservation or a charge of the run `by` against the budget of its root. */
export function changeBudget(
  { runs, budgets }: KeyTables,
  by: number,
  run: number,
  unit: string,
  reserved: number,
  spent: number,
): boolean {
  const key = JSON.stringify([run, unit]);
  const root = runs.get(run)?.root;
  if (root === undefined || runs.get(by)?.root !== root) return false;
  const budget = budgets.get(key) ?? { run, unit, cap: null, reserved: 0, spent: 0 };
  const next = {
    reserved: budget.reserved + reserved,
    spent: Math.min(budget.spent + spent, Number.MAX_SAFE_INTEGER),
  };
  // A charge has happened, a reservation may be refused.
  const capped = reserved > 0 && next.reserved + next.spent > (budget.cap ?? Number.MAX_SAFE_INTEGER);
  if (next.reserved < 0 || capped) return false;
  budgets.set(key, { ...budget, ...next });
  return true;
}

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { budgets } from "../queries.ts";
import { BudgetBar } from "../ui/budget-bar.tsx";

/** Spend of all open runs against their budgets, by unit; renders nothing while no run has a budget. */
export function BudgetSummary() {
  const { data } = useQuery(budgets(20));
  if (data === undefined || data.units.length === 0) return null;
  return (
    <section className="card" aria-labelledby="budget-usage">
      <header>
        <h2 id="budget-usage">Budget usage</h2>
        <Link to="/budgets" className="small">
          All budgets
        </Link>
      </header>
      {data.units.map(({ unit, runs, ...amounts }) => (
        <BudgetBar key={`${unit} ${amounts.cap === null}`} unit={unit} runs={runs} {...amounts} />
      ))}
    </section>
  );
}

import { useQuery } from "@tanstack/react-query";
import { formatAmount } from "../format.ts";
import { budgets } from "../queries.ts";
import { Badge } from "../ui/badge.tsx";
import { BudgetBar, shareOf, tightShare } from "../ui/budget-bar.tsx";
import { Empty } from "../ui/empty.tsx";
import { Meter } from "../ui/meter.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { Table } from "../ui/table.tsx";

export function BudgetsScreen() {
  return (
    <Screen
      title="Budgets"
      about="Spend of runs that have not ended. A reservation beyond the cap is rejected before anything is spent."
    >
      <QueryView of={useQuery(budgets(200))}>
        {({ budgets: rows, units, more }) =>
          rows.length === 0 ? (
            <Empty title="No budgets">
              Set one when you start a run: <code>{"app.start(workflow, input, { budget: { usd: 50 } })"}</code>
            </Empty>
          ) : (
            <>
              <section className="card" aria-label="Total">
                {units.map(({ unit, runs, ...amounts }) => (
                  <BudgetBar key={`${unit} ${amounts.cap === null}`} unit={unit} runs={runs} {...amounts} />
                ))}
              </section>
              <Table
                rows={rows}
                keyOf={({ run, unit }) => `${run} ${unit}`}
                isHighlighted={(row) => shareOf(row) > tightShare}
                columns={[
                  { name: "Run", cell: ({ runId }) => <RunLink id={runId} /> },
                  { name: "Status", cell: ({ status }) => <Badge status={status} /> },
                  { name: "Unit", cell: ({ unit }) => unit },
                  { name: "Spent", cell: ({ spent }) => formatAmount(spent) },
                  { name: "Reserved", cell: ({ reserved }) => formatAmount(reserved) },
                  { name: "Cap", cell: ({ cap }) => (cap === null ? "none" : formatAmount(cap)) },
                  {
                    name: "Used",
                    cell: (row) =>
                      row.cap !== null && (
                        <>
                          <Meter share={shareOf(row)} tone={shareOf(row) > tightShare ? "bad" : "run"} label="used" />
                          <span className="muted small">{Math.round(shareOf(row) * 100)} %</span>
                        </>
                      ),
                  },
                ]}
              />
              {more && <p className="muted small">Budgets of older runs are not included.</p>}
            </>
          )
        }
      </QueryView>
    </Screen>
  );
}

import { useQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { formatAmount } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { BudgetBar, shareOf, tight } from "../ui/budget-bar.tsx";
import { Empty } from "../ui/empty.tsx";
import { Meter } from "../ui/meter.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { Table } from "../ui/table.tsx";

export function BudgetsScreen() {
  const budgets = useQuery({
    queryKey: ["budgets", "all"],
    queryFn: () => call("budgets.list", { query: { limit: 200 } }),
  });
  return (
    <Screen
      title="Budgets"
      about="What runs that have not ended may spend, and have spent. What would go over a cap is refused before it is spent."
    >
      <QueryView of={budgets}>
        {({ budgets: rows, units, more }) =>
          rows.length === 0 ? (
            <Empty title="No run has a budget">
              Give one at the start: <code>{"app.start(workflow, input, { budget: { usd: 50 } })"}</code>
            </Empty>
          ) : (
            <>
              <section className="card" aria-label="In all">
                {units.map(({ runs, ...one }) => (
                  <BudgetBar key={one.unit} {...one} of={`${runs} ${runs === 1 ? "run" : "runs"}`} />
                ))}
              </section>
              <Table
                rows={rows}
                keyOf={({ run, unit }) => `${run} ${unit}`}
                isHighlighted={(row) => shareOf(row) > tight}
                columns={[
                  { name: "Run", cell: ({ runId }) => <RunLink id={runId} /> },
                  { name: "Status", cell: ({ status }) => <Badge status={status} /> },
                  { name: "Unit", cell: ({ unit }) => unit },
                  { name: "Spent", cell: ({ spent }) => formatAmount(spent) },
                  { name: "Reserved", cell: ({ reserved }) => formatAmount(reserved) },
                  { name: "Cap", cell: ({ cap }) => formatAmount(cap) },
                  {
                    name: "Used",
                    cell: (row) => (
                      <>
                        <Meter share={shareOf(row)} tone={shareOf(row) > tight ? "bad" : "run"} label="used" />
                        <span className="muted small">{Math.round(shareOf(row) * 100)} %</span>
                      </>
                    ),
                  },
                ]}
              />
              {more && <p className="muted small">Budgets of older runs are not counted here.</p>}
            </>
          )
        }
      </QueryView>
    </Screen>
  );
}

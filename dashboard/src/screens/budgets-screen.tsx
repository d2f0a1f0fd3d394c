import { useQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { amountOf } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { Spending, shareOf, tight } from "../ui/budget-bar.tsx";
import { Answer, Empty, Meter, RunLink, Screen } from "../ui/parts.tsx";
import { Table } from "../ui/table.tsx";

export function Budgets() {
  const budgets = useQuery({
    queryKey: ["budgets", "all"],
    queryFn: () => call("budgets.list", { query: { limit: 200 } }),
  });
  return (
    <Screen
      title="Budgets"
      about="What runs that have not ended may spend, and have spent. What would go over a cap is refused before it is spent."
    >
      <Answer of={budgets}>
        {({ budgets: rows, units, more }) =>
          rows.length === 0 ? (
            <Empty title="No run has a budget">
              Give one at the start: <code>{"app.start(workflow, input, { budget: { usd: 50 } })"}</code>
            </Empty>
          ) : (
            <>
              <section className="card" aria-label="In all">
                {units.map(({ runs, ...one }) => (
                  <Spending key={one.unit} {...one} of={`${runs} ${runs === 1 ? "run" : "runs"}`} />
                ))}
              </section>
              <Table
                rows={rows}
                keyOf={({ run, unit }) => `${run} ${unit}`}
                isLoud={(row) => shareOf(row) > tight}
                columns={[
                  { name: "Run", cell: ({ runId }) => <RunLink id={runId} /> },
                  { name: "Status", cell: ({ status }) => <Badge status={status} /> },
                  { name: "Unit", cell: ({ unit }) => unit },
                  { name: "Spent", cell: ({ spent }) => amountOf(spent) },
                  { name: "Reserved", cell: ({ reserved }) => amountOf(reserved) },
                  { name: "Cap", cell: ({ cap }) => amountOf(cap) },
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
      </Answer>
    </Screen>
  );
}

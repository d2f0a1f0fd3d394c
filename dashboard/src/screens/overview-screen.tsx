import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call, type Wire } from "../api.ts";
import { formatDuration } from "../format.ts";
import { FaultButtons } from "../overview/fault-buttons.tsx";
import { NeedsAttention } from "../overview/needs-attention.tsx";
import { QuotaWarnings } from "../overview/quota-warnings.tsx";
import { BudgetSummary, Trends } from "../overview/trends.tsx";
import { Badge, type Tone } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { HealthSummary } from "./health-screen.tsx";

type Counted = { readonly count: number; readonly more: boolean };
const said = ({ count, more }: Counted): string => `${count}${more ? "+" : ""}`;
const live = ["RUNNING", "RUNNABLE", "ENDING", "COMPENSATING"];

export function OverviewScreen() {
  const figures = useQuery({ queryKey: ["overview"], queryFn: () => call("overview") });
  return (
    <Screen title="Overview" about="What runs, what waits for a person, and who owns it.">
      <FaultButtons />
      <QueryView of={figures}>{(data) => <Summary {...data} />}</QueryView>
      <div className="halves">
        <NeedsAttention />
        <div className="stack">
          <HealthSummary />
          <QuotaWarnings />
          <BudgetSummary />
        </div>
      </div>
      <Trends />
      <LatestRuns />
    </Screen>
  );
}

function Summary({ runs, failedLately, doubts, obligations, gates, leases }: Wire<"overview">) {
  const of = (status: string): Counted => runs.find((one) => one.status === status) ?? { count: 0, more: false };
  const sum = (statuses: readonly string[]): Counted => ({
    count: statuses.reduce((total, status) => total + of(status).count, 0),
    more: statuses.some((status) => of(status).more),
  });
  const stuck = of("STUCK");
  return (
    <section className="figures" aria-label="Figures">
      <SummaryTile to="/runs" search={{ status: live.join(",") }} name="running" value={said(sum(live))} tone="run" />
      <SummaryTile to="/runs" search={{ status: "WAITING" }} name="waiting" value={said(of("WAITING"))} tone="wait" />
      <SummaryTile to="/gates" name="gates open" value={said(gates)} tone={gates.count > 0 ? "wait" : "idle"} />
      <SummaryTile to="/doubt" name="in doubt" value={said(doubts)} tone={doubts.count > 0 ? "doubt" : "idle"} />
      <SummaryTile to="/doubt" name="stuck" value={said(stuck)} tone={stuck.count > 0 ? "bad" : "idle"} />
      <SummaryTile
        to="/runs"
        search={{ status: "FAILED" }}
        name="failed in 24 h"
        value={said(failedLately)}
        tone={failedLately.count > 0 ? "bad" : "idle"}
      />
      <SummaryTile
        to="/obligations"
        name="owed"
        value={said(obligations)}
        tone={obligations.count > 0 ? "doubt" : "idle"}
      />
      <SummaryTile
        to="/leases"
        name={leases.stalling > 0 ? `leases, ${leases.stalling} stalling` : "leases held"}
        value={said({ count: leases.held + leases.expired, more: leases.more })}
        tone={leases.stalling > 0 || leases.expired > 0 ? "bad" : "run"}
      />
    </section>
  );
}

function SummaryTile({
  to,
  search,
  name,
  value,
  tone,
}: {
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly name: string;
  readonly value: string;
  readonly tone: Tone;
}) {
  return (
    <Link to={to} search={search ?? {}} className={`figure ${tone}`} data-row>
      <span className="figure-value">{value}</span>
      <span className="figure-name">{name}</span>
    </Link>
  );
}

const shown = 8;

function LatestRuns() {
  const runs = useQuery({
    queryKey: ["runs", "latest"],
    queryFn: () => call("runs.list", { query: { limit: shown } }),
  });
  return (
    <section className="card" aria-labelledby="latest">
      <h2 id="latest">Latest runs</h2>
      <QueryView of={runs}>
        {({ runs: rows }) =>
          rows.length === 0 ? (
            <Empty title="No run yet">
              Start one: <code>durable-tape start my-workflow</code>
            </Empty>
          ) : (
            <ul className="lines">
              {rows.map((run) => (
                <li key={run.journal}>
                  <Link to="/runs/$id" params={{ id: run.id }} className="line" data-row>
                    <Badge status={run.status} />
                    <span className="line-text">
                      <span className="mono">{run.id}</span>
                      <span className="muted small">
                        {run.workflow}
                        {run.endedAt === null ? "" : ` · took ${formatDuration(run.endedAt - run.createdAt)}`}
                      </span>
                    </span>
                    <span className="muted small">
                      <TimeAgo at={run.createdAt} />
                    </span>
                  </Link>
                </li>
              ))}
            </ul>
          )
        }
      </QueryView>
    </section>
  );
}

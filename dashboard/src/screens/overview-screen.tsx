import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Wire } from "../api.ts";
import { formatDuration } from "../format.ts";
import { BudgetSummary } from "../overview/budget-summary.tsx";
import { FaultButtons } from "../overview/fault-buttons.tsx";
import { FirstVisit } from "../overview/first-visit.tsx";
import { HealthSummary } from "../overview/health-summary.tsx";
import { NeedsAttention } from "../overview/needs-attention.tsx";
import { QuotaWarnings } from "../overview/quota-warnings.tsx";
import { Trends } from "../overview/trends.tsx";
import { latestRuns, overview } from "../queries.ts";
import { Badge, type Tone } from "../ui/badge.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

/** Counts stop at a bound: `more` means that there are others. */
type Count = { readonly count: number; readonly more: boolean };
const format = ({ count, more }: Count): string => `${count}${more ? "+" : ""}`;
const runningStatuses = ["RUNNING", "RUNNABLE", "ENDING", "COMPENSATING"];

export function OverviewScreen() {
  const isEmpty = useQuery(latestRuns(maxRuns)).data?.runs.length === 0;
  return (
    <Screen title="Overview" about="Activity, health, and everything that needs an operator.">
      <FaultButtons />
      {isEmpty ? <Start /> : <Activity />}
    </Screen>
  );
}

function Start() {
  return (
    <>
      <FirstVisit />
      <HealthSummary />
    </>
  );
}

function Activity() {
  return (
    <>
      <QueryView of={useQuery(overview())}>{(data) => <Summary {...data} />}</QueryView>
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
    </>
  );
}

function Summary({ runs, failedRecently, inDoubt, obligations, gates, leases }: Wire<"overview">) {
  const of = (status: string): Count => runs.find((entry) => entry.status === status) ?? { count: 0, more: false };
  const running = {
    count: runningStatuses.reduce((total, status) => total + of(status).count, 0),
    more: runningStatuses.some((status) => of(status).more),
  };
  const stuck = of("STUCK");
  const toneIf = (tone: Tone, { count }: Count): Tone => (count > 0 ? tone : "idle");
  // The lease of a dead process is not held: the next claim takes it over.
  const held = { count: leases.held, more: leases.more };
  const leaseNotes = [
    ...(leases.stalling > 0 ? [`${leases.stalling} stalled`] : []),
    ...(leases.expired > 0 ? [`${leases.expired} expired`] : []),
  ];
  return (
    <section className="tiles" aria-label="Summary">
      <Tile to="/runs" search={{ status: runningStatuses.join(",") }} name="running" value={running} tone="run" />
      {of("QUEUED").count > 0 && <Tile to="/queues" name="queued" value={of("QUEUED")} tone="wait" />}
      <Tile to="/runs" search={{ status: "WAITING" }} name="waiting" value={of("WAITING")} tone="wait" />
      <Tile to="/gates" name="open gates" value={gates} tone={toneIf("wait", gates)} />
      <Tile to="/attention" name="in doubt" value={inDoubt} tone={toneIf("unknown", inDoubt)} />
      <Tile to="/attention" name="stuck" value={stuck} tone={toneIf("bad", stuck)} />
      <Tile
        to="/runs"
        search={{ status: "FAILED" }}
        name={"failed in 24\u00a0h"}
        value={failedRecently}
        tone={toneIf("bad", failedRecently)}
      />
      <Tile to="/obligations" name="obligations due" value={obligations} tone={toneIf("unknown", obligations)} />
      <Tile
        to="/leases"
        name={["leases held", ...leaseNotes].join(", ")}
        value={held}
        tone={leases.stalling > 0 || leases.expired > 0 ? "bad" : "run"}
      />
    </section>
  );
}

function Tile({
  to,
  search,
  name,
  value,
  tone,
}: {
  readonly to: string;
  readonly search?: Readonly<Record<string, string>>;
  readonly name: string;
  readonly value: Count;
  readonly tone: Tone;
}) {
  return (
    <Link to={to} search={search ?? {}} className={`tile ${tone}`} data-row>
      <span className="tile-value">{format(value)}</span>
      <span className="tile-name">{name}</span>
    </Link>
  );
}

const maxRuns = 8;

function LatestRuns() {
  return (
    <section className="card" aria-labelledby="latest">
      <h2 id="latest">Latest runs</h2>
      <QueryView of={useQuery(latestRuns(maxRuns))}>
        {({ runs: rows }) => (
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
                    {run.error !== undefined && <span className="small bad-text">{run.error.message}</span>}
                  </span>
                  <span className="muted small">
                    <TimeAgo at={run.createdAt} />
                  </span>
                </Link>
              </li>
            ))}
          </ul>
        )}
      </QueryView>
    </section>
  );
}

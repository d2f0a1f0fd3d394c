import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Wire } from "../api.ts";
import { type Health, health, overview } from "../queries.ts";
import { Facts } from "../ui/facts.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { feedState, StoreState } from "../ui/store-state.tsx";

/** Store and leases at a glance. */
export function HealthSummary() {
  const summary = useQuery(overview()).data;
  return (
    <section className="card" aria-labelledby="health-summary">
      <header>
        <h2 id="health-summary">Store and leases</h2>
        <Link to="/health" className="small">
          Health details
        </Link>
      </header>
      <QueryView of={useQuery(health())}>
        {(report) => (
          <Facts
            of={[
              ["Store", <StoreState key="store" health={report} />],
              ["Feed", feedState(report)],
              ["Leases", summary === undefined ? "…" : <LeaseState key="leases" {...summary.leases} />],
              ["Workflows", workflowState(report)],
            ]}
          />
        )}
      </QueryView>
    </section>
  );
}

function LeaseState({ held, expired, stalling }: Wire<"overview">["leases"]) {
  if (held + expired === 0) return <>none held</>;
  if (expired + stalling === 0) return <>{held} held, all making progress</>;
  const problems = [
    ...(stalling > 0 ? [`${stalling} without progress`] : []),
    ...(expired > 0 ? [`${expired} expired`] : []),
  ];
  return (
    <>
      {held} held, <span className="bad-text">{problems.join(", ")}</span>
    </>
  );
}

function workflowState({ unserved = [] }: Health) {
  if (unserved.length === 0) return "every workflow is served";
  return <span className="bad-text">unserved: {unserved.map(({ workflow }) => workflow).join(", ")}</span>;
}

import { useQuery } from "@tanstack/react-query";
import type { Lease, Wire } from "../api.ts";
import { formatDuration, plural } from "../format.ts";
import { RetentionCard } from "../overview/retention-card.tsx";
import { type Health, health, history, leases } from "../queries.ts";
import { Badge } from "../ui/badge.tsx";
import { Facts } from "../ui/facts.tsx";
import { Json } from "../ui/json.tsx";
import { ProcessTable } from "../ui/process-table.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { feedState, StoreState } from "../ui/store-state.tsx";
import { Table } from "../ui/table.tsx";
import { isSilent, labelsOf, type Process, useProcesses } from "../ui/use-processes.ts";

export function HealthScreen() {
  const lags = useQuery(history()).data;
  const held = useQuery(leases(false)).data?.leases ?? [];
  const processes = useProcesses();
  return (
    <Screen title="Health" about="The store, the reactors and the processes that run them.">
      <QueryView of={useQuery(health())}>
        {(report) => (
          <div className="halves">
            <section className="card" aria-labelledby="store">
              <h2 id="store">Store</h2>
              <Facts
                of={[
                  ["State", <StoreState key="state" health={report} />],
                  ["Schema", String(report.store.schema ?? "")],
                  ["Epoch", String(report.store.epoch ?? "")],
                  ["Feed", feedState(report)],
                  ["Server", `${report.replica}, version ${report.version}`],
                ]}
              />
            </section>
            <section className="card" aria-labelledby="unserved">
              <h2 id="unserved">Unserved workflows</h2>
              {(report.unserved ?? []).length === 0 ? (
                <p className="muted">Every workflow is served.</p>
              ) : (
                <Unserved of={report.unserved!} />
              )}
            </section>
            <section className="card across" aria-labelledby="reactors">
              <h2 id="reactors">Reactors</h2>
              <Table
                rows={reactorRows(report, lags, held, processes)}
                keyOf={({ reactor }) => reactor}
                isHighlighted={({ lagMs, errors, perMinute }) => (lagMs ?? 0) > lateMs || errors > perMinute}
                columns={[
                  { name: "Reactor", cell: ({ reactor }) => reactor },
                  { name: "Work due", cell: ({ due }) => (due ? "yes" : "no") },
                  {
                    name: "Lag",
                    cell: ({ lagMs }) => (lagMs === undefined ? "" : lagMs === 0 ? "none" : formatDuration(lagMs)),
                  },
                  { name: "Done per min", cell: ({ perMinute, replicas }) => (replicas.length === 0 ? "" : perMinute) },
                  {
                    name: "Errors per min",
                    cell: ({ errors, replicas }) =>
                      replicas.length === 0 ? "" : <span className={errors > 0 ? "bad-text" : ""}>{errors}</span>,
                  },
                  { name: "Leases", cell: ({ leaseCount }) => leaseCount },
                  {
                    name: "Replicas",
                    cell: ({ replicas }) => replicas.join(", ") || <span className="muted">none reported</span>,
                  },
                ]}
              />
            </section>
            <RetentionCard />
            <ProcessTable leases={held} processes={processes} />
            <details className="card across">
              <summary>Raw response</summary>
              <Json value={report} label="healthz" />
            </details>
          </div>
        )}
      </QueryView>
    </Screen>
  );
}

/** A lag that users notice. */
const lateMs = 30_000;
const builtIn = ["recovery", "reconciler", "outbox", "timers", "compensation"];

function reactorRows(
  { due = [] }: Health,
  lags: Wire<"overview.history"> | undefined,
  held: readonly Lease[],
  processes: readonly Process[],
) {
  const samples = lags?.reactors ?? [];
  const reported = processes
    .filter((process) => !isSilent(process))
    .flatMap(({ label, reactors }) => reactors.map((stats) => ({ label, ...stats })));
  const names = new Set([...builtIn, ...samples.map(({ reactor }) => reactor), ...reported.map(({ name }) => name)]);
  return [...names].map((reactor) => {
    const own = reported.filter(({ name }) => name === reactor);
    return {
      reactor,
      due: due.includes(reactor),
      lagMs: samples.find((sample) => sample.reactor === reactor)?.samples.at(-1)?.lagMs,
      leaseCount: held.filter((lease) => lease.reactor === reactor && lease.state === "HELD").length,
      perMinute: own.reduce((sum, { perMinute }) => sum + perMinute, 0),
      errors: own.reduce((sum, { errorsPerMinute }) => sum + errorsPerMinute, 0),
      replicas: labelsOf(own),
    };
  });
}

function Unserved({ of }: { readonly of: NonNullable<Health["unserved"]> }) {
  return (
    <ul className="lines">
      {of.map(({ workflow, runs, lagMs }) => (
        <li key={workflow} className="line">
          <Badge status="STALLED" label="unserved" />
          <span className="line-text">
            <strong>{workflow}</strong>
            <span className="muted small whole">
              {plural(runs, "run")} waiting, the oldest for {formatDuration(lagMs)}. Start a worker that serves it.
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}

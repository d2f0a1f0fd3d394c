import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { call, type Lease, type Wire } from "../api.ts";
import { formatDuration } from "../format.ts";
import { useHistory } from "../overview/trends.tsx";
import { Badge } from "../ui/badge.tsx";
import { Facts } from "../ui/facts.tsx";
import { Json } from "../ui/json.tsx";
import { ProcessTable } from "../ui/process-table.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Screen } from "../ui/screen.tsx";
import { Table } from "../ui/table.tsx";
import { namesOf, type Process, useProcesses } from "../ui/use-processes.ts";

interface Told {
  readonly status: string;
  readonly version: string;
  readonly replica: string;
  readonly backend: string;
  readonly store: {
    readonly reachable: boolean;
    readonly schema?: number;
    readonly epoch?: number;
    readonly durable?: boolean;
  };
  readonly feed?: { readonly blockedBy: string | null };
  readonly due?: readonly string[];
  readonly unserved?: readonly { readonly workflow: string; readonly runs: number; readonly lagMs: number }[];
}

const useHealth = () =>
  useQuery({ queryKey: ["healthz"], queryFn: async () => (await call("healthz")) as unknown as Told });
const useHeld = () =>
  useQuery({
    queryKey: ["leases", false],
    queryFn: () => call("leases.list", { query: { held: true, limit: 200 } }),
  });

/** Store and leases at a glance. */
export function HealthSummary() {
  const health = useHealth();
  const figures = useQuery({ queryKey: ["overview"], queryFn: () => call("overview") });
  return (
    <section className="card" aria-labelledby="wellbeing">
      <header>
        <h2 id="wellbeing">Store and leases</h2>
        <Link to="/health" className="small">
          all of it
        </Link>
      </header>
      <QueryView of={health}>
        {(told) => (
          <Facts
            of={[
              ["Store", <State key="store" told={told} />],
              ["Feed", told.feed?.blockedBy == null ? "flows" : `held back by ${told.feed.blockedBy}`],
              ["Leases", figures.data === undefined ? "…" : <LeaseState key="leases" {...figures.data.leases} />],
              ["Unserved", unservedOf(told)],
            ]}
          />
        )}
      </QueryView>
    </section>
  );
}

function State({ told }: { readonly told: Told }) {
  return (
    <>
      <Badge status={told.store.reachable ? "CONFIRMED" : "FAILED"} label={told.status} /> {told.backend},{" "}
      {told.store.durable === true ? "durable" : "a power cut may lose the last writes"}
    </>
  );
}

function LeaseState({ held, expired, stalling }: Wire<"overview">["leases"]) {
  if (expired + stalling === 0) return <>{held} held, all moving</>;
  const wrong = [
    ...(stalling > 0 ? [`${stalling} without progress`] : []),
    ...(expired > 0 ? [`${expired} whose time has run out`] : []),
  ];
  return (
    <>
      {held + expired} held, <span className="bad-text">{wrong.join(", ")}</span>
    </>
  );
}

function unservedOf({ unserved = [] }: Told): string {
  if (unserved.length === 0) return "every run has somebody who can drive it";
  return `${unserved.map(({ workflow }) => workflow).join(", ")}: start a worker that has it`;
}

export function HealthScreen() {
  const health = useHealth();
  const held = useHeld();
  const history = useHistory();
  const leases = held.data?.leases ?? [];
  const processes = useProcesses();
  return (
    <Screen title="Health" about="The store, the reactors and what waits for them.">
      <QueryView of={health}>
        {(told) => (
          <div className="halves">
            <section className="card" aria-labelledby="store">
              <h2 id="store">Store</h2>
              <Facts
                of={[
                  ["State", <State key="state" told={told} />],
                  ["Schema", String(told.store.schema ?? "")],
                  ["Epoch", String(told.store.epoch ?? "")],
                  ["Feed", told.feed?.blockedBy == null ? "flows" : `held back by ${told.feed.blockedBy}`],
                  ["Server", `${told.replica}, ${told.version}`],
                ]}
              />
            </section>
            <section className="card" aria-labelledby="unserved">
              <h2 id="unserved">Workflows that nobody serves</h2>
              {(told.unserved ?? []).length === 0 ? (
                <p className="muted">None: every run has somebody who can drive it.</p>
              ) : (
                <Unserved of={told.unserved!} />
              )}
            </section>
            <section className="card across" aria-labelledby="reactors">
              <h2 id="reactors">Reactors</h2>
              <Table
                rows={reactorsOf(told, history.data, leases, processes)}
                keyOf={({ reactor }) => reactor}
                isHighlighted={({ lagMs, errors, perMinute }) => (lagMs ?? 0) > lateMs || errors > perMinute}
                columns={[
                  { name: "Reactor", cell: ({ reactor }) => reactor },
                  { name: "Work", cell: ({ due }) => (due ? "is due" : "none") },
                  {
                    name: "Late by",
                    cell: ({ lagMs }) => (lagMs === undefined ? "" : lagMs === 0 ? "on time" : formatDuration(lagMs)),
                  },
                  { name: "Done per minute", cell: ({ perMinute, who }) => (who.length === 0 ? "" : perMinute) },
                  {
                    name: "Errors per minute",
                    cell: ({ errors, who }) =>
                      who.length === 0 ? "" : <span className={errors > 0 ? "bad-text" : ""}>{errors}</span>,
                  },
                  { name: "Holds", cell: ({ holds }) => holds },
                  {
                    name: "Replicas",
                    cell: ({ who }) => who.join(", ") || <span className="muted">nobody reports it</span>,
                  },
                ]}
              />
            </section>
            <ProcessTable leases={leases} processes={processes} />
            <details className="card across">
              <summary>All of it, as the server tells it</summary>
              <Json value={told} label="healthz" />
            </details>
          </div>
        )}
      </QueryView>
    </Screen>
  );
}

/** Later than this a person would notice. */
const lateMs = 30_000;
const builtIn = ["recovery", "reconciler", "outbox", "timers", "compensation"];

function reactorsOf(
  { due = [] }: Told,
  history: Wire<"overview.history"> | undefined,
  leases: readonly Lease[],
  processes: readonly Process[],
) {
  const samples = history?.reactors ?? [];
  const told = processes.flatMap(({ label, reactors }) => reactors.map((one) => ({ label, ...one })));
  const names = new Set([...builtIn, ...samples.map(({ reactor }) => reactor), ...told.map(({ name }) => name)]);
  return [...names].map((reactor) => {
    const held = leases.filter((lease) => lease.reactor === reactor && lease.state === "HELD");
    const own = told.filter(({ name }) => name === reactor);
    return {
      reactor,
      due: due.includes(reactor),
      lagMs: samples.find((one) => one.reactor === reactor)?.samples.at(-1)?.lagMs,
      holds: held.length,
      perMinute: own.reduce((sum, { perMinute }) => sum + perMinute, 0),
      errors: own.reduce((sum, { errorsPerMinute }) => sum + errorsPerMinute, 0),
      who: namesOf(own),
    };
  });
}

function Unserved({ of }: { readonly of: NonNullable<Told["unserved"]> }) {
  return (
    <ul className="lines">
      {of.map(({ workflow, runs, lagMs }) => (
        <li key={workflow} className="line">
          <Badge status="STALLING" label="unserved" />
          <span className="line-text">
            <strong>{workflow}</strong>
            <span className="muted small whole">
              {runs} {runs === 1 ? "run" : "runs"}, the oldest for {formatDuration(lagMs)}: start a worker that has it
            </span>
          </span>
        </li>
      ))}
    </ul>
  );
}

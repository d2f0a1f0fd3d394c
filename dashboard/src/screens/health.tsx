import { useQuery } from "@tanstack/react-query";
import { call } from "../api.ts";
import { lasting } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { Answer, Empty, Facts, Json, Screen } from "../ui/parts.tsx";

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

/** Who holds runs and acts now, by replica and reactor. */
function replicasOf(leases: readonly { label: string | null; reactor: string | null; state: string }[]) {
  const byReplica = new Map<string, Map<string, number>>();
  for (const { label, reactor, state } of leases) {
    if (label === null || reactor === null || state !== "HELD") continue;
    const of = byReplica.get(label) ?? new Map<string, number>();
    of.set(reactor, (of.get(reactor) ?? 0) + 1);
    byReplica.set(label, of);
  }
  return [...byReplica].map(([label, of]) => ({ label, of: [...of] }));
}

export function Health() {
  const health = useQuery({ queryKey: ["healthz"], queryFn: () => call("healthz") });
  const leases = useQuery({
    queryKey: ["leases", false],
    queryFn: () => call("leases.list", { query: { held: true, limit: 200 } }),
  });
  const replicas = replicasOf(leases.data?.leases ?? []);
  return (
    <Screen title="Health" about="The store, the reactors and what waits for them.">
      <Answer of={health}>
        {(data) => {
          const told = data as unknown as Told;
          const { store, due = [], unserved = [], feed } = told;
          return (
            <div className="halves">
              <section className="card" aria-labelledby="store">
                <h2 id="store">Store</h2>
                <Facts
                  of={[
                    ["State", <Badge key="s" status={store.reachable ? "CONFIRMED" : "FAILED"} label={told.status} />],
                    ["Kind", told.backend],
                    ["Schema", String(store.schema ?? "")],
                    ["Epoch", String(store.epoch ?? "")],
                    ["A power cut", store.durable === true ? "loses nothing acknowledged" : "may lose the last writes"],
                    ["Feed", feed?.blockedBy == null ? "flows" : `held back by ${feed.blockedBy}`],
                    ["Server", `${told.replica}, ${told.version}`],
                  ]}
                />
              </section>
              <section className="card" aria-labelledby="waiting">
                <h2 id="waiting">Due now</h2>
                {due.length === 0 ? (
                  <Empty title="Nothing waits for a reactor" />
                ) : (
                  <ul className="chips">
                    {[...new Set(due)].map((reactor) => (
                      <li key={reactor} className="label">
                        {reactor === "stale" ? "an owner's time has run out" : reactor}
                      </li>
                    ))}
                  </ul>
                )}
                <h2>Workflows that nobody serves</h2>
                {unserved.length === 0 ? (
                  <Empty title="Every run has somebody who can drive it" />
                ) : (
                  <ul className="lines">
                    {unserved.map(({ workflow, runs, lagMs }) => (
                      <li key={workflow} className="line">
                        <Badge status="STALLING" label="unserved" />
                        <span className="line-text">
                          <strong>{workflow}</strong>
                          <span className="muted small">
                            {runs} {runs === 1 ? "run" : "runs"}, the oldest for {lasting(lagMs)}: start a worker that
                            has it
                          </span>
                        </span>
                      </li>
                    ))}
                  </ul>
                )}
              </section>
              <section className="card" aria-labelledby="replicas">
                <h2 id="replicas">Replicas at work</h2>
                {replicas.length === 0 ? (
                  <Empty title="Nobody holds anything just now" />
                ) : (
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Replica</th>
                        <th scope="col">Holds, by reactor</th>
                      </tr>
                    </thead>
                    <tbody>
                      {replicas.map(({ label, of }) => (
                        <tr key={label}>
                          <td>{label}</td>
                          <td>{of.map(([reactor, count]) => `${reactor} ${count}`).join(", ")}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                )}
              </section>
              <details className="card">
                <summary>All of it, as the server tells it</summary>
                <Json value={data} label="healthz" />
              </details>
            </div>
          );
        }}
      </Answer>
    </Screen>
  );
}

import type { Lease } from "../api.ts";
import { formatDuration } from "../format.ts";
import { Table } from "./table.tsx";
import { TimeAgo } from "./time-ago.tsx";
import { isSilent, type Process } from "./use-processes.ts";

interface Row extends Partial<Process> {
  readonly owner: string;
  readonly label: string;
  readonly leases: string;
}

/** Processes that report, then those that hold a lease without a report. */
function rowsOf(processes: readonly Process[], leases: readonly Lease[]): Row[] {
  const held = leases.filter(({ state }) => state === "HELD");
  const leasesOf = (owner: string): string => {
    const reactors = held.filter((lease) => lease.owner === owner).map(({ reactor }) => reactor ?? "");
    return [...new Set(reactors)]
      .map((reactor) => `${reactor} ${reactors.filter((other) => other === reactor).length}`)
      .join(", ");
  };
  const silent = new Map(held.map(({ owner, label }) => [owner ?? "", label ?? ""] as const));
  for (const { owner } of processes) silent.delete(owner);
  return [
    ...processes.map((process) => ({ ...process, leases: leasesOf(process.owner) })),
    ...[...silent].map(([owner, label]) => ({ owner, label, leases: leasesOf(owner) })),
  ];
}

export function ProcessTable({
  processes,
  leases,
}: {
  readonly processes: readonly Process[];
  readonly leases: readonly Lease[];
}) {
  const rows = rowsOf(processes, leases);
  return (
    <section className="card across" aria-labelledby="processes">
      <h2 id="processes">Processes</h2>
      {processes.length > 0 && <p className="muted small">{counted(processes)}</p>}
      {rows.length === 0 ? (
        <p className="muted">No process reported within the last minute, and no lease is held.</p>
      ) : (
        <Table
          rows={rows}
          keyOf={({ owner }) => owner}
          isHighlighted={({ agoMs }) => agoMs !== undefined && isSilent({ agoMs })}
          columns={[
            {
              name: "Process",
              className: "when",
              cell: ({ label, owner }) => (
                <>
                  {label}
                  <span className="muted small block mono">{owner}</span>
                </>
              ),
            },
            {
              name: "Started",
              className: "when",
              cell: ({ startedAt }) => startedAt !== undefined && <TimeAgo at={startedAt} />,
            },
            { name: "Runs", cell: ({ driving }) => driving },
            { name: "Leases by reactor", cell: ({ leases: held }) => held || "none" },
            {
              name: "Singletons",
              cell: ({ singletons = [] }) =>
                singletons.map(({ name, state }) => <span key={name} className="block">{`${name}: ${state}`}</span>),
            },
            {
              name: "Last seen",
              className: "when",
              cell: ({ agoMs }) => (agoMs === undefined ? "does not report" : lastSeen(agoMs)),
            },
          ]}
        />
      )}
    </section>
  );
}

const lastSeen = (agoMs: number): string =>
  isSilent({ agoMs })
    ? `no report for ${formatDuration(agoMs)}`
    : agoMs < 1_000
      ? "just now"
      : `${formatDuration(agoMs)} ago`;

/** A silent process is no longer counted; its row stays for a minute, with what it left behind. */
function counted(processes: readonly Process[]): string {
  const silent = processes.filter(isSilent).length;
  const live = `${processes.length - silent} reporting`;
  return silent === 0 ? live : `${live}; ${silent} silent and not counted`;
}

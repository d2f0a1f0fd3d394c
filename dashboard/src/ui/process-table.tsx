import type { Lease } from "../api.ts";
import { formatDuration } from "../format.ts";
import { Table } from "./table.tsx";
import { TimeAgo } from "./time-ago.tsx";
import type { Process } from "./use-processes.ts";

/** Two reports are missing. */
const silentMs = 35_000;

interface Row extends Partial<Process> {
  readonly owner: string;
  readonly label: string;
  readonly holds: string;
}

/** Who is there: those that report, and those that hold something without a word. */
function rowsOf(processes: readonly Process[], leases: readonly Lease[]): Row[] {
  const held = leases.filter(({ state }) => state === "HELD");
  const holdsOf = (owner: string): string => {
    const reactors = held.filter((lease) => lease.owner === owner).map(({ reactor }) => reactor ?? "");
    return [...new Set(reactors)].map((one) => `${one} ${reactors.filter((other) => other === one).length}`).join(", ");
  };
  const mute = new Map(held.map(({ owner, label }) => [owner ?? "", label ?? ""] as const));
  for (const { owner } of processes) mute.delete(owner);
  return [
    ...processes.map((one) => ({ ...one, holds: holdsOf(one.owner) })),
    ...[...mute].map(([owner, label]) => ({ owner, label, holds: holdsOf(owner) })),
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
      {rows.length === 0 ? (
        <p className="muted">None has reported within the last minute, and nobody holds anything.</p>
      ) : (
        <Table
          rows={rows}
          keyOf={({ owner }) => owner}
          isHighlighted={({ agoMs }) => agoMs !== undefined && agoMs > silentMs}
          columns={[
            {
              name: "Process",
              look: "when",
              cell: ({ label, owner }) => (
                <>
                  {label}
                  <span className="muted small block mono">{owner}</span>
                </>
              ),
            },
            {
              name: "Since",
              look: "when",
              cell: ({ startedAt }) => startedAt !== undefined && <TimeAgo at={startedAt} />,
            },
            { name: "Drives", look: "when", cell: ({ driving }) => driving !== undefined && runsOf(driving) },
            { name: "Holds, by reactor", cell: ({ holds }) => holds || "nothing" },
            {
              name: "Singletons",
              cell: ({ singletons = [] }) =>
                singletons.map(({ name, state }) => <span key={name} className="block">{`${name}: ${state}`}</span>),
            },
            {
              name: "Heard of",
              look: "when",
              cell: ({ agoMs }) => (agoMs === undefined ? "does not report" : heardOf(agoMs)),
            },
          ]}
        />
      )}
    </section>
  );
}

const heardOf = (agoMs: number): string => (agoMs < 1_000 ? "just now" : `${formatDuration(agoMs)} ago`);
const runsOf = (driving: number): string => (driving === 1 ? "1 run" : `${driving} runs`);

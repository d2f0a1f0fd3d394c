import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Sink } from "../api.ts";
import * as queries from "../queries.ts";
import { lagText, noteText, stateStatus } from "../sink/sink-text.ts";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";

const needsOperator = ({ state, openLetters, keptRuns }: Sink): boolean =>
  state === "paused" || state === "retrying" || openLetters + keptRuns > 0;

export function SinksScreen() {
  return (
    <Screen
      title="Sinks"
      about="Where events go. One process at a time sends to a sink, and its checkpoint says what the sink has passed."
    >
      <QueryTable
        of={useQuery(queries.sinks())}
        rows={({ sinks }) => sinks}
        keyOf={({ sink }) => sink}
        isHighlighted={needsOperator}
        empty={
          <Empty title="No sinks">
            Set one in <code>tape.events.sinks</code>, or call <code>runEventFanout</code>.
          </Empty>
        }
        columns={[
          {
            name: "Sink",
            cell: ({ sink }) => (
              <Link to="/sinks/$name" params={{ name: sink }} className="mono" data-row>
                {sink}
              </Link>
            ),
          },
          { name: "State", cell: (sink) => <Badge status={stateStatus(sink)} /> },
          { name: "Lag", className: "when", cell: lagText },
          { name: "Passed up to", className: "when", cell: (sink) => <Passed sink={sink} /> },
          { name: "Dead letters", cell: ({ openLetters }) => openLetters },
          { name: "Holder", className: "when", cell: (sink) => <Holder sink={sink} /> },
          { name: "Note", cell: noteText },
        ]}
      />
    </Screen>
  );
}

export function Passed({ sink: { passedAt, lease } }: { readonly sink: Sink }) {
  if (passedAt !== undefined) return <TimeAgo at={passedAt} />;
  return <span className="muted">{lease.checkpoint === undefined ? "no checkpoint" : "nothing yet"}</span>;
}

export function Holder({ sink: { lease } }: { readonly sink: Sink }) {
  return lease.state === "FREE" ? <span className="muted">none</span> : lease.label;
}

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { Queue } from "../api.ts";
import { formatDuration } from "../format.ts";
import * as queries from "../queries.ts";
import { isFull, queueState, rateText, slotsText } from "../queue/queue-text.ts";
import { useStartRate } from "../queue/use-start-rate.ts";
import { Empty } from "../ui/empty.tsx";
import { Meter } from "../ui/meter.tsx";
import { Screen } from "../ui/screen.tsx";
import { QueryTable } from "../ui/table.tsx";
import { useNow } from "../ui/use-now.ts";

export function QueuesScreen() {
  const now = useNow();
  const queues = useQuery(queries.queues());
  const startRate = useStartRate(queues.data?.queues);
  return (
    <Screen
      title="Queues"
      about="Runs that wait for a slot, and the runs that hold one. A paused queue starts nothing."
    >
      <QueryTable
        of={queues}
        rows={({ queues: rows }) => rows}
        keyOf={({ name }) => name}
        isHighlighted={({ paused }) => paused !== undefined}
        empty={
          <Empty title="No queues">
            Define one with <code>queue("models", …)</code>, and list it in <code>createRunner</code>.
          </Empty>
        }
        columns={[
          {
            name: "Queue",
            cell: ({ name }) => (
              <Link to="/queues/$name" params={{ name }} className="mono" data-row>
                {name}
              </Link>
            ),
          },
          { name: "Slots held", cell: (queue) => <Slots queue={queue} /> },
          { name: "Waiting", cell: ({ waiting, more }) => `${waiting}${more ? " or more" : ""}` },
          {
            name: "Oldest wait",
            cell: ({ oldestWaitMs }) => (oldestWaitMs === undefined ? "" : formatDuration(oldestWaitMs)),
          },
          { name: "Starts a minute", cell: (queue) => <Starts queue={queue} perMinute={startRate(queue.name)} /> },
          { name: "State", cell: (queue) => queueState(queue, now) },
        ]}
      />
    </Screen>
  );
}

export function Slots({ queue }: { readonly queue: Queue }) {
  const { running, limits } = queue;
  const tone = isFull(queue) ? "bad" : "run";
  return (
    <>
      {limits.concurrency !== undefined && (
        <Meter share={running / limits.concurrency} tone={tone} label="slots held" />
      )}
      <span className="muted small block">{slotsText(running, limits.concurrency)}</span>
    </>
  );
}

/** The rate of the last minute, against the rate that is allowed. */
export function Starts({ queue, perMinute }: { readonly queue: Queue; readonly perMinute: number | undefined }) {
  const { rate } = queue.limits;
  return (
    <>
      {perMinute === undefined ? "…" : Math.round(perMinute)}
      {rate !== undefined && <span className="muted small block">allowed: {rateText(rate)}</span>}
    </>
  );
}

import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "@tanstack/react-router";
import type { Queue, QueueKey, QueueSlot } from "../api.ts";
import { formatDuration } from "../format.ts";
import * as queries from "../queries.ts";
import { PauseAction, QueueActions } from "../queue/queue-actions.tsx";
import { keyState, keyText, pauseText, queueState, rateText } from "../queue/queue-text.ts";
import { useStartRate } from "../queue/use-start-rate.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { type Fact, Facts } from "../ui/facts.tsx";
import { RunLink } from "../ui/run-link.tsx";
import { Screen } from "../ui/screen.tsx";
import { type Column, QueryTable } from "../ui/table.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useNow } from "../ui/use-now.ts";
import { Slots, Starts } from "./queues-screen.tsx";

export function QueueScreen() {
  const { name } = useParams({ from: "/queues/$name" });
  const queues = useQuery(queries.queues());
  const startRate = useStartRate(queues.data?.queues);
  const queue = queues.data?.queues.find((one) => one.name === name);
  const { operate } = usePermissions();
  if (queues.data === undefined) {
    return queues.error === null ? (
      <div className="loading" role="status" aria-label="Loading" />
    ) : (
      <ErrorMessage error={queues.error} />
    );
  }
  if (queue === undefined) {
    return (
      <Screen title={`Queue ${name} not found`}>
        <p>
          <Link to="/queues">Browse all queues</Link>
        </p>
      </Screen>
    );
  }
  return (
    <Screen
      title={<span className="mono">{name}</span>}
      about={queue.paused === undefined ? <Counts queue={queue} /> : <Paused queue={queue} />}
      actions={operate ? <QueueActions queue={queue} /> : undefined}
    >
      <section className="card" aria-label="Limits">
        <Facts of={factsOf(queue, startRate(name))} />
      </section>
      <Held name={name} />
      <Keys name={name} />
    </Screen>
  );
}

function Counts({ queue }: { readonly queue: Queue }) {
  const now = useNow();
  const state = queueState(queue, now);
  const counted =
    queue.spec.counts === "running"
      ? "A run has a slot while it runs, and gives it up while it waits."
      : "A run keeps its slot until it has ended, also while it waits.";
  return (
    <>
      {counted}
      {state === "" ? "" : ` Now: ${state}.`}
    </>
  );
}

function Paused({ queue: { paused } }: { readonly queue: Queue }) {
  if (paused === undefined) return null;
  return (
    <span className="bad-text">
      {pauseText(paused)}, <TimeAgo at={paused.at} />
    </span>
  );
}

function factsOf(queue: Queue, perMinute: number | undefined): readonly Fact[] {
  const { waiting, more, keys, oldestWaitMs, limits, spec, override } = queue;
  const orMore = more ? " or more" : "";
  const { perKey } = limits;
  return [
    ["Slots held", <Slots key="slots" queue={queue} />],
    ["Waiting", `${waiting}${orMore} in ${keys}${orMore} ${keys === 1 ? "key" : "keys"}`],
    ["Oldest wait", oldestWaitMs === undefined ? "none waits" : formatDuration(oldestWaitMs)],
    ["Starts a minute", <Starts key="starts" queue={queue} perMinute={perMinute} />],
    ["Each key", perKey === undefined ? "no limit" : limitsText(perKey)],
    ...(spec.perWorker === undefined ? [] : [["Each process", `${spec.perWorker} at once`] as const]),
    ...(override === undefined ? [] : [["Set by an operator", `defined: ${limitsText(spec)}`] as const]),
  ];
}

function limitsText({ concurrency, rate }: Pick<Queue["limits"], "concurrency" | "rate">): string {
  const parts = [
    ...(concurrency === undefined ? [] : [`${concurrency} at once`]),
    ...(rate === undefined ? [] : [rateText(rate)]),
  ];
  return parts.length === 0 ? "no limit" : parts.join("; ");
}

/** Holders that do not execute: they keep a slot from others. */
const isBlocking = ({ status }: QueueSlot): boolean => status === "STUCK" || status === "WAITING";

function Held({ name }: { readonly name: string }) {
  return (
    <section aria-labelledby="held">
      <h2 id="held">Slots held</h2>
      <QueryTable
        of={useQuery(queries.queueRuns(name, "HELD"))}
        rows={({ runs }) => runs}
        keyOf={({ journal }) => journal}
        isHighlighted={isBlocking}
        empty={<Empty title="No slot is held" />}
        columns={[
          { name: "Run", cell: ({ run }) => <RunLink id={run} /> },
          { name: "Status", cell: ({ status }) => <Badge status={status} /> },
          { name: "Workflow", cell: ({ workflow }) => workflow },
          { name: "Key", className: "mono", cell: ({ key }) => keyText(key) },
          { name: "Since", className: "when", cell: ({ sinceMs }) => formatDuration(sinceMs) },
        ]}
      />
    </section>
  );
}

function Keys({ name }: { readonly name: string }) {
  const now = useNow();
  const { operate } = usePermissions();
  const columns: readonly Column<QueueKey>[] = [
    { name: "Key", className: "mono", cell: ({ key }) => keyText(key) },
    { name: "Slots held", cell: ({ running }) => running },
    { name: "Waiting", cell: ({ waiting }) => waiting },
    {
      name: "Oldest wait",
      cell: ({ oldestWaitMs }) => (oldestWaitMs === undefined ? "" : formatDuration(oldestWaitMs)),
    },
    { name: "Weight", cell: ({ weight }) => weight },
    { name: "State", cell: (key) => keyState(key, now) },
    ...(operate
      ? [
          {
            name: "Actions",
            cell: ({ key, paused }: QueueKey) => (
              <PauseAction queue={name} partition={key} paused={paused !== undefined} />
            ),
          },
        ]
      : []),
  ];
  const keys = useQuery(queries.queueKeys(name));
  return (
    <section aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <QueryTable
        of={keys}
        rows={({ keys: rows }) => rows.toSorted((a, b) => (b.oldestWaitMs ?? -1) - (a.oldestWaitMs ?? -1))}
        keyOf={({ key }) => key}
        isHighlighted={({ paused }) => paused !== undefined}
        empty={<Empty title="No key has runs">Longest wait first, once runs wait or hold slots.</Empty>}
        columns={columns}
      />
      {keys.data?.more === true && <p className="muted small">More keys have runs: durable-tape queue keys {name}</p>}
    </section>
  );
}

import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import type { QueueReason, Run } from "../api.ts";
import { formatDuration, formatTime, plural, sentence } from "../format.ts";
import { runPosition } from "../queries.ts";
import { RunLink } from "../ui/run-link.tsx";
import { useNow } from "../ui/use-now.ts";
import { keyText, pauseText, slotsText } from "./queue-text.ts";

/** Where an open run is in its queue, and why it does not start. Nothing for a run without a queue. */
export function PositionCard({ run }: { readonly run: Run }) {
  const now = useNow();
  const position = useQuery(runPosition(run)).data?.position;
  if (position === undefined) return null;
  const { queue, key, state, sinceMs, reasons, class: priority } = position;
  const place = (
    <>
      <Link to="/queues/$name" params={{ name: queue }} className="mono">
        {queue}
      </Link>
      {key === "" ? "" : `, key ${key}`}
    </>
  );
  if (state === "HELD" || state === "PARKED") {
    const where = (
      <p className="muted">
        {state === "HELD" ? "Holds a slot of queue " : "Gave up its slot while it waits, in queue "}
        {place}.
      </p>
    );
    if (reasons.length === 0) return where;
    return (
      <section className="card" aria-label="Queue">
        {where}
        <Reasons reasons={reasons} now={now} />
      </section>
    );
  }
  if (queue === "") {
    return (
      <section className="card" aria-label="Start">
        <p>{reasons.map((reason) => reasonOf(reason, now))}</p>
      </section>
    );
  }
  const rank = priority === 0 ? "has run before and comes first" : `priority ${priority}`;
  return (
    <section className="card" aria-label="Queue">
      <p>
        {state === "DELAYED" ? "Joins queue " : `Waits for ${formatDuration(sinceMs)} in queue `}
        {place} ({rank}).
      </p>
      <Reasons reasons={reasons} now={now} />
    </section>
  );
}

function Reasons({ reasons, now }: { readonly reasons: readonly QueueReason[]; readonly now: number }) {
  return (
    <ul>
      {reasons.map((reason) => (
        <li key={`${reason.why} ${"key" in reason ? reason.key : ""}`}>{reasonOf(reason, now)}</li>
      ))}
      {reasons.length === 0 && <li>Nothing keeps it from starting: a process takes it next.</li>}
    </ul>
  );
}

function reasonOf(reason: QueueReason, now: number): ReactNode {
  const at = (time: number): string => `${formatTime(time)}, in ${formatDuration(Math.max(0, time - now))}`;
  switch (reason.why) {
    case "delayed":
      return `Delayed until ${at(reason.at)}.`;
    case "paused":
      return sentence(
        reason.key === undefined ? pauseText(reason) : `key ${keyText(reason.key)} is ${pauseText(reason)}`,
      );
    case "queue_full":
      return <Full of="Queue" {...reason} />;
    case "key_full":
      return <Full of="Key" {...reason} />;
    case "rate":
      return `Rate${reason.key === undefined ? "" : " of its key"}: the next start is at ${at(reason.nextAt)}.`;
    case "behind":
      return `${plural(reason.runs, "run")}${reason.more ? " or more" : ""} of its key before it.`;
    case "unserved":
      return `No process serves it: none has reported the workflow ${reason.workflow} with this queue.`;
    case "cycle":
      return <Cycle steps={reason.steps} />;
  }
}

/** Runs that wait for each other's slots; an operator cancels one of them. */
function Cycle({ steps }: { readonly steps: Extract<QueueReason, { why: "cycle" }>["steps"] }) {
  return (
    <>
      Cycle: cancel one of these runs, or they wait forever.
      <ul>
        {steps.map(({ run, queue, key, holder }, k) => (
          <li key={run}>
            <RunLink id={run} /> waits for a slot of queue {queue}
            {key === "" ? "" : `, key ${key}`}, which <RunLink id={holder} /> holds while it waits for{" "}
            <RunLink id={steps[(k + 1) % steps.length]!.run} />.
          </li>
        ))}
      </ul>
    </>
  );
}

function Full({
  of,
  running,
  limit,
  runs,
}: {
  readonly of: string;
  readonly running: number;
  readonly limit: number;
  readonly runs: readonly string[];
}) {
  return (
    <>
      {of} full: {slotsText(running, limit)} slots held by{" "}
      {runs.map((id, k) => (
        <span key={id}>
          {k === 0 ? "" : ", "}
          <RunLink id={id} />
        </span>
      ))}
      {running > runs.length ? ", …" : ""}
    </>
  );
}

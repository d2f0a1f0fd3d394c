import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { type CallOptions, call, type Effect, type InDoubt } from "../api.ts";
import { ago, brief, describeReason, formatDuration, formatTime, plural, sentence } from "../format.ts";
import { itemEvidence } from "../queries.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "./badge.tsx";
import { ConfirmAction } from "./confirm-action.tsx";
import { type Fact, Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { RunLink } from "./run-link.tsx";
import { useNow } from "./use-now.ts";

/** An effect or a compensation in doubt: what is known about it, and how an operator can resolve it. */
export function InDoubtCard({ entry }: { readonly entry: InDoubt }) {
  const { operate } = usePermissions();
  const now = useNow();
  const [open, setOpen] = useState(false);
  const { effect, runId } = entry;
  const { status, reason, semantics, businessKey, attempt, args, changedAt } = effect;
  const name = nameOf(effect);
  return (
    <article className="card attention-card" aria-label={`${name} of ${runId}`}>
      <header>
        <Badge status={status} />
        <h2>{name}</h2>
        <span className="muted small">for {formatDuration(now - changedAt)}</span>
      </header>
      <p>{sentence(describeReason(reason))}</p>
      <Facts
        of={[
          ["Run", <RunLink key="run" id={runId} />],
          [
            "Arguments",
            <span key="args" className="mono">
              {brief(args, 160)}
            </span>,
          ],
          ...(businessKey === null ? [] : [["Business key", businessKey] as const]),
          ["Semantics", `${semantics.replaceAll("_", "-")}, ${plural(attempt, "attempt")}`],
          ...observationFacts(entry, now),
        ]}
      />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Records</summary>
        {open && <Evidence effect={effect} />}
      </details>
      {operate && <ResolveActions entry={entry} name={name} />}
    </article>
  );
}

const nameOf = ({ name, role }: Effect): string => name ?? (role === "compensation" ? "compensation" : "effect");

const observationNames: Readonly<Record<string, string>> = {
  confirmed: "it happened",
  absent: "it did not happen",
  duplicate: "it happened more than once",
  inconclusive: "inconclusive",
  error: "observe failed",
};

/** Observations so far, the next one, late evidence, and the last request of an operator. */
function observationFacts(
  { observations, lastObservation, evidence, lastRequest, nextInMs, observer, effect }: InDoubt,
  now: number,
) {
  const latest = evidence.at(-1);
  const facts: Fact[] = [
    [
      "Observations",
      lastObservation === null
        ? "none yet"
        : `${observations}, last ${ago(lastObservation.at, now)}: ${observationNames[lastObservation.observation] ?? lastObservation.observation}${
            brief(lastObservation.detail) === "" ? "" : `, ${brief(lastObservation.detail, 120)}`
          }`,
    ],
    ["Next observation", nextObservation(nextInMs, observer, effect.status)],
  ];
  if (latest !== undefined) {
    const outcome = latest.happened ? "happened" : "did not happen";
    facts.push(["Evidence", `attempt ${latest.attempt} reported late that it ${outcome}`]);
  }
  if (lastRequest !== null)
    facts.push(["Requested by", `${lastRequest.by}, ${ago(lastRequest.at, now)}: ${lastRequest.reason}`]);
  return facts;
}

function nextObservation(nextInMs: number | null, observer: string | null, status: string): string {
  if (observer !== null) return `in progress on ${observer}`;
  if (nextInMs === null) return status === "STUCK" ? "none: an operator must resolve it" : "none";
  return nextInMs === 0 ? "due now" : `in ${formatDuration(nextInMs)}`;
}

type Resolution = NonNullable<CallOptions<"effects.resolve">["body"]>["resolution"];

function ResolveActions({ entry: { effect, runId }, name }: { readonly entry: InDoubt; readonly name: string }) {
  const { pos, sub, semantics, role } = effect;
  const resolve = (resolution: Resolution, reason: string): Promise<unknown> =>
    call("effects.resolve", { params: { id: runId, pos, sub }, body: { resolution, reason } });
  const withValue = (value: unknown) => (value === undefined ? {} : { value });
  const returnValue = { label: "Return value as JSON (optional)", initial: "" };
  return (
    <footer className="actions">
      <ConfirmAction
        label="Confirm"
        title={`Confirm ${name}`}
        primary
        value={returnValue}
        run={({ reason, value }) => resolve({ as: "confirmed", ...withValue(value) }, reason)}
      >
        <p>You checked the upstream: it happened. The run continues with this return value.</p>
      </ConfirmAction>
      <ConfirmAction
        label="Mark failed"
        title={`Mark ${name} failed`}
        run={({ reason }) => resolve({ as: "failed" }, reason)}
      >
        <p>You checked the upstream: it did not happen and will not. The run continues with a failure.</p>
      </ConfirmAction>
      <ConfirmAction
        label="Observe now"
        title={`Observe ${name} now`}
        run={({ reason }) => resolve({ as: "observe" }, reason)}
      >
        <p>The reconciler calls observe at once. Only a conclusive observation settles the effect.</p>
      </ConfirmAction>
      {role === "effect" && (
        <ConfirmAction
          label="Compensate"
          title={`Compensate ${name}`}
          value={returnValue}
          run={({ reason, value }) => resolve({ as: "compensate", ...withValue(value) }, reason)}
        >
          <p>You checked the upstream: it happened, but must not stay. It is confirmed, then compensated at once.</p>
        </ConfirmAction>
      )}
      <ConfirmAction
        label="Retry"
        title={`Retry ${name}`}
        danger
        run={({ reason }) => resolve({ as: "retry" }, reason)}
      >
        <p>
          {semantics === "non_idempotent"
            ? "If it did happen, it happens twice. Retry only if you are sure that it did not, or if a duplicate does no harm."
            : "Sends it again with the same idempotency key."}
        </p>
      </ConfirmAction>
    </footer>
  );
}

const evidenceKinds: ReadonlySet<string> = new Set([
  ...["effect.dispatched", "effect.settled", "effect.observed", "effect.evidence", "operator.action"],
  ...["obligation.settled", "obligation.armed", "obligation.surplus"],
]);

function Evidence({ effect: { item, run } }: { readonly effect: Effect }) {
  const { data } = useQuery(itemEvidence(item ?? run));
  if (data === undefined) return <p className="muted">…</p>;
  const records = data.filter(({ kind }) => evidenceKinds.has(kind)).sort((a, b) => a.at - b.at);
  if (records.length === 0) return <p className="muted">No records yet.</p>;
  return (
    <ol className="evidence">
      {records.map((record) => (
        <li key={`${record.kind} ${record.seq}`}>
          <span className="muted small">{formatTime(record.at)}</span> <strong>{record.kind}</strong>
          <Json value={record.data} label={record.kind} />
        </li>
      ))}
    </ol>
  );
}

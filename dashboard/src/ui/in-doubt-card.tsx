import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { call, type Effect, type Entry, type InDoubt } from "../api.ts";
import { ago, brief, describeReason, formatDuration, formatTime, sentence } from "../format.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "./badge.tsx";
import { ConfirmAction } from "./confirm-action.tsx";
import { Facts } from "./facts.tsx";
import { Json } from "./json.tsx";
import { RunLink } from "./run-link.tsx";
import { useNow } from "./use-now.ts";

/** An act or an undoing of which nobody knows whether it happened: what is known, and what a person may say. */
export function InDoubtCard({ doubt }: { readonly doubt: InDoubt }) {
  const { operate } = usePermissions();
  const now = useNow();
  const [open, setOpen] = useState(false);
  const { effect, runId } = doubt;
  const { status, reason, semantics, businessKey, attempt, args, changedAt } = effect;
  const what = nameOf(effect);
  return (
    <article className="card doubt-card" aria-label={`${what} of ${runId}`}>
      <header>
        <Badge status={status} />
        <h2>{what}</h2>
        <span className="muted small">for {formatDuration(now - changedAt)}</span>
      </header>
      <p>{sentence(describeReason(reason))}</p>
      <Facts
        of={[
          ["Run", <RunLink key="run" id={runId} />],
          [
            "Asked for",
            <span key="args" className="mono">
              {brief(args, 160)}
            </span>,
          ],
          ...(businessKey === null ? [] : [["Business key", businessKey] as const]),
          ["Kind", `${semantics.replaceAll("_", "-")}, ${attempt} ${attempt === 1 ? "attempt" : "attempts"}`],
          ...observed(doubt, now),
        ]}
      />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>All that was recorded</summary>
        {open && <Evidence effect={effect} />}
      </details>
      {operate && <ResolveActions doubt={doubt} what={what} />}
    </article>
  );
}

const nameOf = ({ name, role }: Effect): string => name ?? (role === "compensation" ? "an undoing" : "an act");

const seen: Readonly<Record<string, string>> = {
  confirmed: "it was there",
  absent: "it was not there",
  duplicate: "it was there more than once",
  inconclusive: "could not tell",
  error: "the look failed",
};

/** What was seen so far, when somebody looks next, and what a person asked for last. */
function observed({ looks, lastLook, evidence, asked, nextInMs, looker, effect }: InDoubt, now: number) {
  const told = evidence.at(-1);
  const facts: (readonly [string, ReactNode])[] = [
    [
      "Looks",
      lastLook === null
        ? "nobody has looked yet"
        : `${looks}; the last ${ago(lastLook.at, now)}: ${seen[lastLook.observation] ?? lastLook.observation}${
            brief(lastLook.detail) === "" ? "" : `, ${brief(lastLook.detail, 120)}`
          }`,
    ],
    ["Next look", nextOf(nextInMs, looker, effect.status)],
  ];
  if (told !== undefined) {
    const word = told.happened ? "happened" : "did not happen";
    facts.push(["Evidence", `attempt ${told.attempt} came back later and said that it ${word}`]);
  }
  if (asked !== null) facts.push(["Asked by", `${asked.who}, ${ago(asked.at, now)}: ${asked.reason}`]);
  return facts;
}

function nextOf(nextInMs: number | null, looker: string | null, status: string): string {
  if (looker !== null) return `${looker} looks now`;
  if (nextInMs === null) return status === "STUCK" ? "none: a person must say" : "none";
  return nextInMs === 0 ? "is due" : `in ${formatDuration(nextInMs)}`;
}

function ResolveActions({ doubt: { effect, runId }, what }: { readonly doubt: InDoubt; readonly what: string }) {
  const { pos, sub, semantics, role } = effect;
  const resolve = (resolution: object, reason: string): Promise<unknown> =>
    call("effects.resolve", { params: { id: runId, pos, sub }, body: { resolution, reason } });
  const given = (value: unknown) => (value === undefined ? {} : { value });
  const returned = { label: "What it returned, as JSON (may be empty)", initial: "" };
  return (
    <footer className="actions">
      <ConfirmAction
        label="It happened"
        title={`${what} happened`}
        primary
        value={returned}
        run={({ reason, value }) => resolve({ as: "confirmed", ...given(value) }, reason)}
      >
        <p>You looked in the world and it is there. The run goes on with this result.</p>
      </ConfirmAction>
      <ConfirmAction
        label="It did not"
        title={`${what} did not happen`}
        run={({ reason }) => resolve({ as: "failed" }, reason)}
      >
        <p>You looked in the world and it is not there, and will not come. The run is told that it failed.</p>
      </ConfirmAction>
      <ConfirmAction
        label="Look again"
        title={`Look at ${what} again`}
        run={({ reason }) => resolve({ as: "observe" }, reason)}
      >
        <p>The reconciler looks at once. Nothing is settled by that unless it sees something.</p>
      </ConfirmAction>
      {role === "effect" && (
        <ConfirmAction
          label="Compensate"
          title={`${what} happened, and must be undone`}
          value={returned}
          run={({ reason, value }) => resolve({ as: "compensate", ...given(value) }, reason)}
        >
          <p>You looked in the world and it is there, but it must not stay. It is taken as done, and undone at once.</p>
        </ConfirmAction>
      )}
      <ConfirmAction
        label="Do it again"
        title={`Have ${what} done again`}
        danger
        run={({ reason }) => resolve({ as: "retry" }, reason)}
      >
        <p>
          {semantics === "non_idempotent"
            ? "If it did happen, it happens twice. Choose this only when you are sure, or when twice does no harm."
            : "It is sent again under the same key."}
        </p>
      </ConfirmAction>
    </footer>
  );
}

const telling: ReadonlySet<string> = new Set([
  ...["effect.dispatched", "effect.settled", "effect.observed", "effect.evidence", "operator.action"],
  ...["obligation.settled", "obligation.armed", "obligation.surplus"],
]);

function Evidence({ effect: { item, run } }: { readonly effect: Effect }) {
  const journal = item ?? run;
  const found = useQuery({
    queryKey: ["item", journal],
    queryFn: async () => {
      const target = { journal };
      const [main, notes] = await Promise.all([
        call("store.journal", { body: { target, limit: 200 } }),
        call("store.journal", { body: { target, limit: 200, inbox: true } }),
      ]);
      return [...main.records, ...notes.records].filter(({ kind }) => telling.has(kind)).sort((a, b) => a.at - b.at);
    },
  });
  if (found.data === undefined) return <p className="muted">…</p>;
  if (found.data.length === 0) return <p className="muted">Nobody has looked yet.</p>;
  return (
    <ol className="evidence">
      {found.data.map((record: Entry) => (
        <li key={`${record.kind} ${record.seq}`}>
          <span className="muted small">{formatTime(record.at)}</span> <strong>{record.kind}</strong>
          <Json value={record.data} label={record.kind} />
        </li>
      ))}
    </ol>
  );
}

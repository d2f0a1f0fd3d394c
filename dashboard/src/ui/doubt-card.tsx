import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Effect, type Entry } from "../api.ts";
import { brief, lasting, momentOf, reasonOf } from "../format.ts";
import { useMay } from "../session.tsx";
import { Badge } from "./badge.tsx";
import { Deed } from "./deed.tsx";
import { useNow } from "./now.ts";
import { Facts, Json, RunLink } from "./parts.tsx";

/** An act or an undoing of which nobody knows whether it happened: what is known, and what a person may say. */
export function DoubtCard({ effect, run }: { readonly effect: Effect; readonly run: string | undefined }) {
  const { operate } = useMay();
  const now = useNow();
  const [open, setOpen] = useState(false);
  const { pos, sub, name, status, reason, semantics, businessKey, attempt, args, changedAt, role } = effect;
  const what = name ?? (role === "inverse" ? "an undoing" : "an act");
  const resolve = (resolution: object, why: string): Promise<unknown> =>
    call("effects.resolve", { params: { id: run ?? "", pos, sub }, body: { resolution, reason: why } });
  return (
    <article className="card doubt-card" aria-label={`${what} of ${run ?? "a run"}`}>
      <header>
        <Badge status={status} />
        <h2>{what}</h2>
        <span className="muted small">for {lasting(now - changedAt)}</span>
      </header>
      <p>{reasonOf(reason)}</p>
      <Facts
        of={[
          ["Run", run === undefined ? "…" : <RunLink key="run" id={run} />],
          [
            "Asked for",
            <span key="args" className="mono">
              {brief(args, 160)}
            </span>,
          ],
          ...(businessKey === null ? [] : [["Business key", businessKey] as const]),
          ["Kind", `${semantics.replaceAll("_", "-")}, ${attempt} ${attempt === 1 ? "attempt" : "attempts"}`],
        ]}
      />
      <details onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>Evidence</summary>
        {open && <Evidence effect={effect} />}
      </details>
      {operate && run !== undefined && (
        <footer className="actions">
          <Deed
            label="It happened"
            title={`${what} happened`}
            primary
            value={{ label: "What it returned, as JSON (may be empty)", initial: "" }}
            run={({ reason: why, value }) =>
              resolve({ as: "happened", ...(value === undefined ? {} : { value }) }, why)
            }
          >
            <p>You looked in the world and it is there. The run goes on with this result.</p>
          </Deed>
          <Deed
            label="It did not"
            title={`${what} did not happen`}
            run={({ reason: why }) => resolve({ as: "failed" }, why)}
          >
            <p>You looked in the world and it is not there, and will not come. The run is told that it failed.</p>
          </Deed>
          <Deed
            label="Do it again"
            title={`Have ${what} done again`}
            danger
            run={({ reason: why }) => resolve({ as: "again" }, why)}
          >
            <p>
              {semantics === "non_idempotent"
                ? "If it did happen, it happens twice. Choose this only when you are sure, or when twice does no harm."
                : "It is sent again under the same key."}
            </p>
          </Deed>
        </footer>
      )}
    </article>
  );
}

const telling: ReadonlySet<string> = new Set([
  ...["effect.dispatched", "effect.settled", "effect.observed", "effect.evidence", "operator.acted"],
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
          <span className="muted small">{momentOf(record.at)}</span> <strong>{record.kind}</strong>
          <Json value={record.data} label={record.kind} />
        </li>
      ))}
    </ol>
  );
}

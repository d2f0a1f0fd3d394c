import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { call } from "../api.ts";
import { brief, describeReason } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { Empty } from "../ui/empty.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useNames } from "../ui/use-names.ts";

const shown = 8;

/** Acts in doubt, and stuck runs that none of them explains. */
export function useAttention() {
  const figures = useQuery({ queryKey: ["overview"], queryFn: () => call("overview") }).data;
  // Every screen asks for these: only where the figures, which the server keeps for a while, say that there are any.
  const anyEffect = figures !== undefined && figures.doubts.count + figures.obligations.count > 0;
  const anyRun = figures?.runs.some(({ status, count }) => status === "STUCK" && count > 0) === true;
  const doubts = useQuery({
    queryKey: ["effects", "doubt"],
    queryFn: () => call("effects.list", { query: { status: "UNKNOWN,STUCK", limit: 100 } }),
    enabled: anyEffect,
  });
  const stuck = useQuery({
    queryKey: ["runs", "stuck"],
    queryFn: () => call("runs.list", { query: { status: "STUCK", limit: 100 } }),
    enabled: anyRun,
  });
  const effects = doubts.data?.effects ?? [];
  const runs = (stuck.data?.runs ?? []).filter(({ journal }) => effects.every(({ run }) => run !== journal));
  const known = (!anyEffect || doubts.data !== undefined) && (!anyRun || stuck.data !== undefined);
  return { effects, runs, ready: figures !== undefined && known };
}

/** Acts in doubt, open gates and stuck runs, the oldest first. */
export function NeedsAttention() {
  const { effects, runs, ready: known } = useAttention();
  const figures = useQuery({ queryKey: ["overview"], queryFn: () => call("overview") }).data;
  const gates = useQuery({
    queryKey: ["gates", "open"],
    queryFn: () => call("gates.list", { query: { open: true, limit: 100 } }),
  });
  const open = gates.data?.gates ?? [];
  const nameOf = useNames([...effects, ...open].map(({ run }) => run));
  const now = figures?.now ?? 0;
  const meantBy = (meant: string | undefined): string => (meant === undefined ? "" : `; did you mean ${meant}?`);
  const lines: readonly Needed[] = [
    ...(figures?.unserved ?? []).map(({ workflow, runs: waiting, meant }) => ({
      ...{ key: `workflow ${workflow}`, at: now, to: "/runs", run: workflow },
      badge: <Badge status="RUNNABLE" label="unserved" />,
      text: `${waiting} runs wait for a workflow that no process has${meantBy(meant)}`,
    })),
    ...(figures?.unservedEffects ?? []).map(({ effect, items, meant }) => ({
      ...{ key: `definition ${effect}`, at: now, to: "/effects", run: effect },
      badge: <Badge status="PENDING" label="unserved" />,
      text: `${items} calls wait for an effect that no process has${meantBy(meant)}`,
    })),
    ...(figures?.hung ?? []).map(({ run, forMs, owner }) => ({
      ...{ key: `hung ${run}`, at: now - forMs, to: `/runs/${encodeURIComponent(run)}`, run },
      badge: <Badge status="RUNNING" label="may hang" />,
      text: `has recorded nothing for ${Math.round(forMs / 60_000)} min, held by ${owner ?? "nobody"}`,
    })),
    ...effects.map(({ run, pos, sub, name, status, reason, changedAt }) => ({
      ...{ key: `effect ${run} ${pos} ${sub}`, at: changedAt, to: "/doubt", run: nameOf(run) },
      badge: <Badge status={status} />,
      text: `${name ?? "an undoing"}: ${describeReason(reason)}`,
    })),
    ...open.map(({ run, pos, name, payload, openedAt }) => ({
      ...{ key: `gate ${run} ${pos}`, at: openedAt, to: "/gates", run: nameOf(run) },
      badge: <Badge status="OPEN" label="gate" />,
      text: `${name}: ${brief(payload, 80)}`,
    })),
    ...runs.map(({ id, journal, workflow, createdAt }) => ({
      ...{ key: `run ${journal}`, at: createdAt, to: "/doubt", run: id },
      badge: <Badge status="STUCK" />,
      text: `${workflow} cannot go on by itself`,
    })),
  ].toSorted((a, b) => a.at - b.at);
  const ready = known && gates.data !== undefined;
  return (
    <section className="card" aria-labelledby="needs">
      <h2 id="needs">Needs a person</h2>
      {ready && lines.length === 0 && (
        <Empty title="Nobody waits for you">
          Acts in doubt, stuck or hanging runs, open gates and what no process has will be here.
        </Empty>
      )}
      <ul className="lines needs">
        {lines.slice(0, shown).map(({ key, to, badge, text, run, at }) => (
          <li key={key}>
            <Link to={to} className="line" data-row>
              {badge}
              <span className="line-text">
                <span className="whole">{text}</span>
                <span className="muted mono small">{run ?? "…"}</span>
              </span>
              <span className="muted small">
                <TimeAgo at={at} />
              </span>
            </Link>
          </li>
        ))}
      </ul>
      {lines.length > shown && <p className="muted small">and {lines.length - shown} more</p>}
    </section>
  );
}

interface Needed {
  readonly key: string;
  readonly at: number;
  readonly to: string;
  readonly badge: ReactNode;
  readonly text: string;
  readonly run: string | undefined;
}

import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Effect, type Run, type Term, type Timer } from "../api.ts";
import { formatDuration, formatTime } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { useNow } from "../ui/use-now.ts";
import { OwnerList, OwnershipBand } from "./ownership-band.tsx";
import { type Replay, replayedIn, replaysOf } from "./replays.ts";
import { RowDrawer } from "./row-drawer.tsx";
import { type Scale, type ScaleKind, scaleOf } from "./scale.ts";
import { type Row, timelineRows } from "./timeline-rows.ts";
import { windowRows } from "./window.ts";

/** Beyond it a word would leave the axis. */
const nearEnd = 0.93;
const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1];
/** Journals of acts that are read along; a run with more shows them in its Journal. */
const mostItems = 12;

const final: ReadonlySet<string> = new Set(["CONFIRMED", "FAILED", "WITHDRAWN"]);
const said = (purpose: string): string => purpose.replaceAll("_", " ");

export interface TimelineProps {
  readonly run: Run;
  readonly head: number;
  readonly terms: readonly Term[];
  readonly effects: readonly Effect[];
  readonly timers: readonly Timer[];
}

export function Timeline(props: TimelineProps) {
  const { run, head } = props;
  const [end, setEnd] = useState<number>();
  const to = Math.min(end ?? head, head);
  const from = Math.max(1, to - windowRows + 1);
  const window = useQuery({
    queryKey: ["journal", run.id, from, to],
    queryFn: () => call("runs.journal", { params: { id: run.id }, query: { from, limit: to - from + 1 } }),
    enabled: head > 0,
    staleTime: Number.POSITIVE_INFINITY,
    meta: { settled: true },
    placeholderData: (before) => before,
  });
  return (
    <>
      {head > windowRows && (
        <nav className="pager" aria-label="Part of the journal">
          <button type="button" disabled={from <= 1} onClick={() => setEnd(Math.max(windowRows, from - 1))}>
            Earlier
          </button>
          <span>
            records {from} to {to} of {head}
          </span>
          <button
            type="button"
            disabled={to >= head}
            onClick={() => setEnd(to + windowRows >= head ? undefined : to + windowRows)}
          >
            Later
          </button>
        </nav>
      )}
      <QueryView of={window}>{({ records }) => <Picture {...props} records={records} isLast={to >= head} />}</QueryView>
    </>
  );
}

function Picture({
  run,
  terms,
  effects,
  timers,
  records,
  isLast,
}: TimelineProps & {
  readonly records: Parameters<typeof timelineRows>[0]["records"];
  readonly isLast: boolean;
}) {
  const clock = useNow();
  const [kind, setKind] = useState<ScaleKind>("fitted");
  const [chosen, setChosen] = useState<Row>();
  const journals = effects
    .flatMap(({ item, changedAt, status }) => (item === null ? [] : [{ item, changedAt, status }]))
    .slice(0, mostItems);
  const items = useQueries({
    queries: journals.map(({ item, changedAt, status }) => ({
      queryKey: ["item records", item, changedAt],
      queryFn: () => call("store.journal", { body: { target: { journal: item }, limit: 200 } }),
      // A look that tells nothing is in the act's journal alone: while it is open, it is read again.
      meta: { settled: final.has(status) },
    })),
  });
  const rows = timelineRows({
    ...{ records, effects, timers },
    items: new Map(journals.map(({ item }, k) => [item, items[k]?.data?.records ?? []])),
  });
  const started = records[0]?.seq === 1 ? run.createdAt : (records[0]?.at ?? run.createdAt);
  const now = run.endedAt ?? Math.max(clock, records.at(-1)?.at ?? 0);
  const until = isLast ? now : (records.at(-1)?.at ?? now);
  const inSight = terms.filter(({ begunAt, endedAt }) => begunAt <= until && (endedAt ?? now) >= started);
  const coming = [
    ...timers
      .filter(({ status }) => status === "SET")
      .map(({ dueAt, purpose }) => ({ at: dueAt, about: said(purpose) })),
    ...rows.flatMap(({ what, name, points }) =>
      points.map(({ at, about }) => ({ at, about: `${what} ${name}, ${about}` })),
    ),
  ].filter(({ at }) => isLast && run.endedAt === null && at > now);
  const first = coming.toSorted((a, b) => a.at - b.at)[0];
  const next = first?.at;
  const scale = scaleOf(
    [
      ...[started, until],
      ...(next === undefined ? [] : [next]),
      ...records.map(({ at }) => at),
      ...inSight.flatMap(({ begunAt, endedAt }) => [begunAt, endedAt ?? now]),
    ].filter((time) => time >= started && time <= Math.max(until, next ?? 0)),
    kind,
  );
  const replays = replaysOf(terms, records, now).filter(({ from }) => from >= started && from <= until);
  const nowAt = isLast && run.endedAt === null ? scale.at(now) : undefined;
  return (
    <section className="timeline" aria-label="Timeline">
      <div className="timeline-tools">
        <OwnerList terms={inSight} />
        <label className="check">
          <input
            type="checkbox"
            checked={kind === "true"}
            onChange={(event) => setKind(event.target.checked ? "true" : "fitted")}
          />
          true time
        </label>
      </div>
      <div className="time-grid">
        <div className="time-row axis" aria-hidden="true">
          <span />
          <div className="track">
            {ticks.map((share) => (
              <span key={share} className="tick" style={{ left: `${share * 100}%` }}>
                {share === 0 ? formatTime(started).slice(11) : `+${formatDuration(scale.timeAt(share) - started)}`}
              </span>
            ))}
          </div>
        </div>
        <div className="time-row owners-row">
          <span className="time-name">
            <strong>owner</strong>
          </span>
          <div className="track">
            <OwnershipBand terms={inSight} scale={scale} now={now} />
            <NowLine at={nowAt} named />
          </div>
        </div>
        {rows.map((row) => (
          <TimeRow
            key={row.key}
            {...{ row, scale, now, nowAt }}
            replays={replayedIn(row, replays)}
            onOpen={() => setChosen(row)}
          />
        ))}
        {first !== undefined && (
          <p className="muted small next">
            next by itself: {first.about} in {formatDuration(first.at - now)}
          </p>
        )}
        <Legend />
      </div>
      {chosen !== undefined && (
        <RowDrawer row={chosen} replays={replayedIn(chosen, replays)} onClose={() => setChosen(undefined)} />
      )}
    </section>
  );
}

const placed = (scale: Scale, from: number, to: number) => {
  const left = scale.at(from);
  return { left: `${left * 100}%`, width: `${Math.max(0, scale.at(to) - left) * 100}%` };
};

/** What the colours say: the words beside the rows say it too. */
const legend = [
  ["run", "at work"],
  ["wait", "waits"],
  ["doubt", "in doubt"],
  ["bad", "stuck or failed"],
  ["replayed", "replayed: handed back from the journal, not done again"],
] as const;

function Legend() {
  return (
    <ul className="legend" aria-label="What the bars mean">
      {legend.map(([tone, name]) => (
        <li key={tone}>
          <span className={`span ${tone}`} />
          {name}
        </li>
      ))}
    </ul>
  );
}

function NowLine({ at, named = false }: { readonly at: number | undefined; readonly named?: boolean }) {
  if (at === undefined) return null;
  return (
    <span className="now-line" style={{ left: `${at * 100}%` }}>
      {named && <span className={at > nearEnd ? "before" : ""}>now</span>}
    </span>
  );
}

function TimeRow({
  row,
  scale,
  now,
  nowAt,
  replays,
  onOpen,
}: {
  readonly row: Row;
  readonly scale: Scale;
  readonly now: number;
  readonly nowAt: number | undefined;
  readonly replays: readonly Replay[];
  readonly onOpen: () => void;
}) {
  return (
    <div className="time-row" data-time-row>
      <button type="button" className="time-name" onClick={onOpen} data-row>
        <span className="what">{row.what}</span>
        <strong>{row.name}</strong>
        {row.status !== undefined && row.status !== "CONFIRMED" && <Badge status={row.status} />}
      </button>
      <div className="track">
        {row.spans.map(({ from, to, tone, about }) => (
          <span
            key={`${from} ${about}`}
            className={`span ${tone}${to === undefined ? " open" : ""}`}
            style={placed(scale, from, to ?? now)}
            title={`${about}, ${formatDuration((to ?? now) - from)}`}
          />
        ))}
        {replays.map(({ token, label, from, to }) => (
          <span
            key={token}
            className="span replayed"
            style={placed(scale, from, to)}
            title={`replayed by ${label} at token ${token}: its result came from the journal, nothing was done again`}
          />
        ))}
        {row.points
          .filter(({ planned, at }) => planned !== true || at > now)
          .map((point) => (
            <span
              key={`${point.at} ${point.about}`}
              className={`point ${point.tone}${point.at > now ? " future" : ""}`}
              style={{ left: `${scale.at(point.at) * 100}%` }}
              title={`${point.about}, ${formatTime(point.at)}`}
            />
          ))}
        <NowLine at={nowAt} />
      </div>
    </div>
  );
}

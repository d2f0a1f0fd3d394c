import { keepPreviousData, useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { Effect, JournalRecord, Run, Term, Timer } from "../api.ts";
import { formatDuration, formatTime } from "../format.ts";
import { itemRecords, runRecords, windowRows } from "../queries.ts";
import { Badge } from "../ui/badge.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { useNow } from "../ui/use-now.ts";
import { OwnerList, OwnershipBand } from "./ownership-band.tsx";
import { type Replay, replayedIn, replaysOf } from "./replays.ts";
import { RowDrawer } from "./row-drawer.tsx";
import { type Scale, type ScaleKind, scaleOf } from "./scale.ts";
import { type Row, timelineRows } from "./timeline-rows.ts";

/** To the right of this share a label would leave the axis. */
const nearEnd = 0.93;
const ticks = [0, 0.25, 0.5, 0.75, 1];
/** One request each. Effects beyond this show only what the run's own journal has. */
const maxItems = 12;

const settled: ReadonlySet<string> = new Set(["CONFIRMED", "FAILED", "WITHDRAWN"]);

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
  const window = useQuery({ ...runRecords(run.id, from, to), placeholderData: keepPreviousData });
  return (
    <>
      {head > windowRows && (
        <nav className="pager" aria-label="Journal window">
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
      <QueryView of={window}>{({ records }) => <Grid {...props} records={records} isLast={to >= head} />}</QueryView>
    </>
  );
}

function Grid({
  run,
  terms,
  effects,
  timers,
  records,
  isLast,
}: TimelineProps & {
  readonly records: readonly JournalRecord[];
  readonly isLast: boolean;
}) {
  const clock = useNow();
  const [kind, setKind] = useState<ScaleKind>("compressed");
  const [chosen, setChosen] = useState<Row>();
  const journals = effects
    .flatMap(({ item, changedAt, status }) => (item === null ? [] : [{ item, changedAt, status }]))
    .slice(0, maxItems);
  const items = useQueries({
    queries: journals.map(({ item, changedAt, status }) => itemRecords(item, changedAt, settled.has(status))),
  });
  const rows = timelineRows({
    ...{ records, effects, timers },
    items: new Map(journals.map(({ item }, k) => [item, items[k]?.data?.records ?? []])),
  });
  const { started, now, visible, next, scale, replays, nowAt } = layoutOf({
    run,
    terms,
    timers,
    records,
    isLast,
    rows,
    clock,
    kind,
  });
  return (
    <section className="timeline" aria-label="Timeline">
      <div className="timeline-tools">
        <OwnerList terms={visible} />
        <ScaleSwitch kind={kind} onChange={setKind} />
      </div>
      <div className="time-grid">
        <Axis scale={scale} started={started} />
        <OwnersRow {...{ visible, scale, now, nowAt }} />
        {rows.map((row) => (
          <TimeRow
            key={row.key}
            {...{ row, scale, now, nowAt }}
            replays={replayedIn(row, replays)}
            onOpen={() => setChosen(row)}
          />
        ))}
        {next !== undefined && (
          <p className="muted small next">
            Next: {next.label} in {formatDuration(next.at - now)}
          </p>
        )}
        <Legend />
      </div>
      {chosen !== undefined && (
        <RowDrawer
          run={run.id}
          row={chosen}
          replays={replayedIn(chosen, replays)}
          onClose={() => setChosen(undefined)}
        />
      )}
    </section>
  );
}

/** What the grid draws: the visible stretch of time, its scale, and what is planned next. */
function layoutOf({
  run,
  terms,
  timers,
  records,
  isLast,
  rows,
  clock,
  kind,
}: Pick<TimelineProps, "run" | "terms" | "timers"> & {
  readonly records: readonly JournalRecord[];
  readonly isLast: boolean;
  readonly rows: readonly Row[];
  readonly clock: number;
  readonly kind: ScaleKind;
}) {
  const started = records[0]?.seq === 1 ? run.createdAt : (records[0]?.at ?? run.createdAt);
  const now = run.endedAt ?? Math.max(clock, records.at(-1)?.at ?? 0);
  const until = isLast ? now : (records.at(-1)?.at ?? now);
  const visible = terms.filter(({ startedAt, endedAt }) => startedAt <= until && (endedAt ?? now) >= started);
  const planned = [
    ...timers
      .filter(({ status }) => status === "SET")
      .map(({ dueAt, purpose }) => ({ at: dueAt, label: purpose.replaceAll("_", " ") })),
    ...rows.flatMap(({ kind: row, name, points }) =>
      points.map(({ at, label }) => ({ at, label: `${row} ${name}, ${label}` })),
    ),
  ].filter(({ at }) => isLast && run.endedAt === null && at > now);
  const next = planned.toSorted((a, b) => a.at - b.at)[0];
  const scale = scaleOf(
    [
      ...[started, until],
      ...(next === undefined ? [] : [next.at]),
      ...records.map(({ at }) => at),
      ...visible.flatMap(({ startedAt, endedAt }) => [startedAt, endedAt ?? now]),
    ].filter((time) => time >= started && time <= Math.max(until, next?.at ?? 0)),
    kind,
  );
  const replays = replaysOf(terms, records, now).filter(({ from }) => from >= started && from <= until);
  const nowAt = isLast && run.endedAt === null ? scale.at(now) : undefined;
  return { started, now, visible, next, scale, replays, nowAt };
}

function ScaleSwitch({ kind, onChange }: { readonly kind: ScaleKind; readonly onChange: (kind: ScaleKind) => void }) {
  return (
    <label className="check">
      <input
        type="checkbox"
        checked={kind === "linear"}
        onChange={(event) => onChange(event.target.checked ? "linear" : "compressed")}
      />
      linear time
    </label>
  );
}

function OwnersRow({
  visible,
  scale,
  now,
  nowAt,
}: {
  readonly visible: TimelineProps["terms"];
  readonly scale: Scale;
  readonly now: number;
  readonly nowAt: number | undefined;
}) {
  return (
    <div className="time-row owners-row">
      <span className="time-name">
        <strong>owner</strong>
      </span>
      <div className="track">
        <OwnershipBand terms={visible} scale={scale} now={now} />
        <NowLine at={nowAt} labelled />
      </div>
    </div>
  );
}

function Axis({ scale, started }: { readonly scale: Scale; readonly started: number }) {
  return (
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
  );
}

const placed = (scale: Scale, from: number, to: number) => {
  const left = scale.at(from);
  return { left: `${left * 100}%`, width: `${Math.max(0, scale.at(to) - left) * 100}%` };
};

/** Each row also says its status in words, so no reader depends on these colours. */
const legend = [
  ["run", "running"],
  ["wait", "waiting"],
  ["unknown", "in doubt"],
  ["bad", "stuck or failed"],
  ["replayed", "replayed: result read from the journal, not executed again"],
] as const;

function Legend() {
  return (
    <ul className="legend" aria-label="Legend">
      {legend.map(([tone, name]) => (
        <li key={tone}>
          <span className={`span ${tone}`} />
          {name}
        </li>
      ))}
    </ul>
  );
}

function NowLine({ at, labelled = false }: { readonly at: number | undefined; readonly labelled?: boolean }) {
  if (at === undefined) return null;
  return (
    <span className="now-line" style={{ left: `${at * 100}%` }}>
      {labelled && <span className={at > nearEnd ? "before" : ""}>now</span>}
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
        <span className="kind">{row.kind}</span>
        <strong>{row.name}</strong>
        {row.status !== undefined && row.status !== "CONFIRMED" && <Badge status={row.status} />}
      </button>
      <div className="track">
        {row.spans.map(({ from, to, tone, label }) => (
          <span
            key={`${from} ${label}`}
            className={`span ${tone}${to === undefined ? " open" : ""}`}
            style={placed(scale, from, to ?? now)}
            title={`${label}, ${formatDuration((to ?? now) - from)}`}
          />
        ))}
        {replays.map(({ token, label, from, to }) => (
          <span
            key={token}
            className="span replayed"
            style={placed(scale, from, to)}
            title={`replayed by ${label} (token ${token}): result read from the journal, not executed again`}
          />
        ))}
        {row.points
          .filter(({ planned, at }) => planned !== true || at > now)
          .map((point) => (
            <span
              key={`${point.at} ${point.label}`}
              className={`point ${point.tone}${point.at > now ? " future" : ""}`}
              style={{ left: `${scale.at(point.at) * 100}%` }}
              title={`${point.label}, ${formatTime(point.at)}`}
            />
          ))}
        <NowLine at={nowAt} />
      </div>
    </div>
  );
}

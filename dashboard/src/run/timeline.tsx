import { useQueries, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { call, type Effect, type Entry, type Run, type Term, type Timer } from "../api.ts";
import { lasting, momentOf, opened } from "../format.ts";
import { Badge } from "../ui/badge.tsx";
import { useNow } from "../ui/now.ts";
import { Answer, Facts, Json, Modal, RunLink } from "../ui/parts.tsx";
import { Band, Owners } from "./band.tsx";
import { type Row, rowsOf } from "./fold.ts";
import { type Scale, type ScaleKind, scaleOf } from "./scale.ts";
import { windowRows } from "./window.ts";

/** Beyond it a word would leave the axis. */
const nearEnd = 0.93;
const ticks = [0, 0.2, 0.4, 0.6, 0.8, 1];
/** Journals of acts that are read along; a run with more shows them in its Journal. */
const mostItems = 12;

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
      <Answer of={window}>{({ records }) => <Picture {...props} records={records} isLast={to >= head} />}</Answer>
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
  readonly records: Parameters<typeof rowsOf>[0]["records"];
  readonly isLast: boolean;
}) {
  const clock = useNow();
  const [kind, setKind] = useState<ScaleKind>("fitted");
  const [chosen, setChosen] = useState<Row>();
  const journals = effects
    .flatMap(({ item, changedAt }) => (item === null ? [] : [{ item, changedAt }]))
    .slice(0, mostItems);
  const items = useQueries({
    queries: journals.map(({ item, changedAt }) => ({
      queryKey: ["item records", item, changedAt],
      queryFn: () => call("store.journal", { body: { target: { journal: item }, limit: 200 } }),
      meta: { settled: true },
    })),
  });
  const rows = rowsOf({
    ...{ records, effects, timers },
    items: new Map(journals.map(({ item }, k) => [item, items[k]?.data?.records ?? []])),
  });
  const started = records[0]?.seq === 1 ? run.createdAt : (records[0]?.at ?? run.createdAt);
  const now = run.endedAt ?? Math.max(clock, records.at(-1)?.at ?? 0);
  const until = isLast ? now : (records.at(-1)?.at ?? now);
  const inSight = terms.filter(({ begunAt, endedAt }) => begunAt <= until && (endedAt ?? now) >= started);
  const future = isLast
    ? timers.filter(({ status, dueAt }) => status === "SET" && dueAt > now).map(({ dueAt }) => dueAt)
    : [];
  const next = future.length === 0 ? undefined : Math.min(...future);
  const scale = scaleOf(
    [
      ...[started, until],
      ...(next === undefined ? [] : [next]),
      ...records.map(({ at }) => at),
      ...inSight.flatMap(({ begunAt, endedAt }) => [begunAt, endedAt ?? now]),
    ].filter((time) => time >= started && time <= Math.max(until, next ?? 0)),
    kind,
  );
  const nowAt = isLast && run.endedAt === null ? scale.at(now) : undefined;
  return (
    <section className="timeline" aria-label="Timeline">
      <div className="timeline-tools">
        <Owners terms={inSight} />
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
                {share === 0 ? momentOf(started).slice(11) : `+${lasting(scale.timeAt(share) - started)}`}
              </span>
            ))}
          </div>
        </div>
        <div className="time-row owners-row">
          <span className="time-name">
            <strong>owner</strong>
          </span>
          <div className="track">
            <Band terms={inSight} scale={scale} now={now} />
            <NowLine at={nowAt} named />
          </div>
        </div>
        {rows.map((row) => (
          <TimeRow key={row.key} row={row} scale={scale} now={now} nowAt={nowAt} onOpen={() => setChosen(row)} />
        ))}
        {next !== undefined && (
          <p className="muted small next">
            next by itself: {timers.find(({ dueAt }) => dueAt === next)?.purpose.replaceAll("_", " ")} in{" "}
            {lasting(next - now)}
          </p>
        )}
      </div>
      {chosen !== undefined && (
        <Modal side title={`${chosen.what} ${chosen.name}`} onClose={() => setChosen(undefined)}>
          <Records row={chosen} />
        </Modal>
      )}
    </section>
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
  onOpen,
}: {
  readonly row: Row;
  readonly scale: Scale;
  readonly now: number;
  readonly nowAt: number | undefined;
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
        {row.spans.map((span) => {
          const from = scale.at(span.from);
          const to = scale.at(span.to ?? now);
          return (
            <span
              key={`${span.from} ${span.about}`}
              className={`span ${span.tone}${span.to === undefined ? " open" : ""}`}
              style={{ left: `${from * 100}%`, width: `${Math.max(0, to - from) * 100}%` }}
              title={`${span.about}, ${lasting((span.to ?? now) - span.from)}`}
            />
          );
        })}
        {row.points.map((point) => (
          <span
            key={`${point.at} ${point.about}`}
            className={`point ${point.tone}${point.at > now ? " future" : ""}`}
            style={{ left: `${scale.at(point.at) * 100}%` }}
            title={`${point.about}, ${momentOf(point.at)}`}
          />
        ))}
        <NowLine at={nowAt} />
      </div>
    </div>
  );
}

/** The run that this record started. */
function childOf({ kind, data }: Entry): string | undefined {
  return kind === "child.started" ? (opened(data) as { readonly id: string }).id : undefined;
}

export function Records({ row }: { readonly row: Row }) {
  return (
    <ol className="evidence">
      {row.records.map((record) => (
        <li key={`${record.journal} ${record.seq}`}>
          <strong>{record.kind}</strong>
          {childOf(record) !== undefined && <RunLink id={childOf(record)!} />}
          <Facts
            of={[
              ["Journal", `${record.journal}, record ${record.seq}`],
              ["Token", record.token],
              ["At", momentOf(record.at)],
            ]}
          />
          <Json value={record.data} label={record.kind} />
        </li>
      ))}
    </ol>
  );
}

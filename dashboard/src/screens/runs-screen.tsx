import { useQueries } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { call, type Run } from "../api.ts";
import { formatDuration } from "../format.ts";
import type { RunSearch } from "../router.tsx";
import { isFiltered, runQuery } from "../run-search.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { BulkCancel } from "../ui/bulk-cancel.tsx";
import { Empty } from "../ui/empty.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { Screen } from "../ui/screen.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useWindow, VirtualTable } from "../ui/virtual-table.tsx";

const pageRows = 100;
const rowHeight = 44;

const statuses = [
  ["", "any status"],
  ["RUNNING,RUNNABLE,ENDING,COMPENSATING", "running"],
  ["WAITING", "waiting"],
  ["STUCK", "stuck"],
  ["COMPLETED", "completed"],
  ["FAILED", "failed"],
  ["CANCELLED", "cancelled"],
  ["COMPENSATED", "compensated"],
] as const;

const spans = [
  ["", "any time"],
  ["1h", "in the last hour"],
  ["24h", "in the last 24 hours"],
  ["7d", "in the last 7 days"],
] as const;
const isSpan = (since: string | undefined): boolean => spans.some(([value]) => value === (since ?? ""));

export function RunsScreen() {
  const search = useSearch({ from: "/runs" });
  const { start } = usePermissions();
  return (
    <Screen
      title="Runs"
      about={search.prefix === undefined ? "Newest first." : `Whose ids begin with ${search.prefix}, in their order.`}
      actions={isFiltered(search) && start ? <BulkCancel search={search} /> : undefined}
    >
      <Filters search={search} />
      <RunTable key={JSON.stringify(search)} search={search} />
    </Screen>
  );
}

function Filters({ search }: { readonly search: RunSearch }) {
  const go = useNavigate({ from: "/runs" });
  const set = (changed: RunSearch): void => void go({ search: (before) => ({ ...before, ...changed }), replace: true });
  const known = statuses.some(([value]) => value === (search.status ?? ""));
  const [between, setBetween] = useState(!isSpan(search.since) || search.until !== undefined);
  return (
    <form className="filters" onSubmit={(event) => event.preventDefault()}>
      <label>
        Status
        <select value={search.status ?? ""} onChange={(event) => set({ status: event.target.value || undefined })}>
          {statuses.map(([value, name]) => (
            <option key={name} value={value}>
              {name}
            </option>
          ))}
          {!known && <option value={search.status}>{search.status?.toLowerCase()}</option>}
        </select>
      </label>
      <label>
        Started
        <select
          value={between ? "between" : (search.since ?? "")}
          onChange={(event) => {
            const chosen = event.target.value;
            setBetween(chosen === "between");
            set({ since: chosen === "between" ? undefined : chosen || undefined, until: undefined });
          }}
        >
          {spans.map(([value, name]) => (
            <option key={name} value={value}>
              {name}
            </option>
          ))}
          <option value="between">between…</option>
        </select>
      </label>
      {between && (
        <>
          <TimeFilter name="From" value={search.since} onChange={(since) => set({ since })} />
          <TimeFilter name="Until" value={search.until} onChange={(until) => set({ until })} />
        </>
      )}
      <TextFilter name="Workflow" value={search.workflow} onChange={(workflow) => set({ workflow })} />
      <TextFilter
        name="Label"
        placeholder="key:value"
        value={search.label}
        onChange={(label) => set({ label: label?.includes(":") === true ? label : undefined })}
      />
      <TextFilter name="Id begins with" value={search.prefix} onChange={(prefix) => set({ prefix })} />
      <label className="check">
        <input
          type="checkbox"
          checked={search.doubt === true}
          onChange={(event) => set({ doubt: event.target.checked || undefined })}
        />
        has doubt
      </label>
    </form>
  );
}

function TimeFilter({
  name,
  value,
  onChange,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly onChange: (moment: string | undefined) => void;
}) {
  return (
    <label>
      {name}
      <input
        type="datetime-local"
        defaultValue={value ?? ""}
        onChange={(event) => onChange(event.target.value || undefined)}
      />
    </label>
  );
}

/** Asks when the person is done typing. */
function TextFilter({
  name,
  value,
  placeholder,
  onChange,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly placeholder?: string;
  readonly onChange: (text: string | undefined) => void;
}) {
  const [text, setText] = useState(value ?? "");
  const done = (): void => onChange(text.trim() === "" ? undefined : text.trim());
  return (
    <label>
      {name}
      <input
        value={text}
        placeholder={placeholder ?? "any"}
        onChange={(event) => setText(event.target.value)}
        onBlur={done}
        onKeyDown={(event) => event.key === "Enter" && done()}
      />
    </label>
  );
}

/**
 * A listing continues behind the last row of the page before. Only pages with rows in sight are asked for, and asked for
 * again when something changes; how many there are in all nobody counts.
 */
function RunTable({ search }: { readonly search: RunSearch }) {
  const [cursors, setCursors] = useState<readonly (number | undefined)[]>([undefined]);
  const [lengths, setLengths] = useState<readonly number[]>([]); // of the pages that were read
  const starts = lengths.map((_length, page) => lengths.slice(0, page).reduce((sum, length) => sum + length, 0));
  const count = lengths.reduce((sum, length) => sum + length, 0);
  const window = useWindow(count, rowHeight);
  // Whatever lies behind the rows that are known is on the page that comes next.
  const pageAt = (index: number): number =>
    index >= count ? cursors.length - 1 : starts.findLastIndex((start) => start <= index);
  const first = pageAt(window.first);
  const last = Math.max(first, pageAt(window.last + 1));
  const inSight = cursors.map((_cursor, page) => page).filter((page) => page >= first && page <= last);
  const pages = useQueries({
    queries: inSight.map((page) => ({
      queryKey: ["runs", search, cursors[page]],
      queryFn: () => call("runs.list", { query: { ...runQuery(search), before: cursors[page], limit: pageRows } }),
    })),
  });
  const answerOf = (page: number) => pages[inSight.indexOf(page)]?.data;
  const end = answerOf(cursors.length - 1);
  const endJournal = end?.runs.at(-1)?.journal;
  const endLength = end?.runs.length;
  const endMore = end?.more === true;
  const endPage = cursors.length - 1;
  useEffect(() => {
    if (endLength === undefined) return;
    setLengths((before) => (before[endPage] === endLength ? before : [...before.slice(0, endPage), endLength]));
    // A page has a bound in bytes too: a short one is not the last one.
    if (endMore && endJournal !== undefined) setCursors((before) => [...before.slice(0, endPage + 1), endJournal]);
  }, [endPage, endLength, endJournal, endMore]);
  const newest = answerOf(0);
  const seam = newest?.more === true ? newest.runs.at(-1)?.journal : undefined;
  const newestLength = newest?.runs.length ?? 0;
  useEffect(() => {
    // New runs have pushed others over the edge of the first page: what follows begins elsewhere now.
    if (seam === undefined || cursors.length < 2 || cursors[1] === seam) return;
    setCursors([undefined, seam]);
    setLengths([newestLength]);
  }, [seam, newestLength, cursors]);
  const error = pages.find((page) => page.error !== null && page.data === undefined)?.error;
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (cursors.length === 1 && endLength === 0) {
    return (
      <Empty title={isFiltered(search) ? "No run is like this" : "No run yet"}>
        {isFiltered(search) ? (
          <Link to="/runs">Show all runs</Link>
        ) : (
          <>
            Start one: <code>durable-tape start my-workflow --input '{"{}"}'</code>
          </>
        )}
      </Empty>
    );
  }
  // As long as a page with more behind it was the last one read, a further one is expected.
  const more = lengths.length < cursors.length;
  return (
    <div className="runs">
      <VirtualTable
        label="Runs"
        kind="run"
        columns={["Status", "Run", "Workflow", "Owner", "Started", "Took"]}
        window={window}
        count={more ? undefined : count}
      >
        {(index) => {
          const page = pageAt(index);
          const run = answerOf(page)?.runs[index - (starts[page] ?? count)];
          return run === undefined ? <td className="ghost" /> : <RunCells run={run} />;
        }}
      </VirtualTable>
      <p className="muted small" role="status">
        {more ? `${Math.max(count, pageRows)} or more runs; further ones are read as you scroll` : `${count} runs`}
      </p>
    </div>
  );
}

function RunCells({ run }: { readonly run: Run }) {
  const { id, status, workflow, lease, createdAt, endedAt, labels } = run;
  return (
    <>
      <td>
        <Badge status={status} />
      </td>
      <td className="run-id">
        <Link to="/runs/$id" params={{ id }} className="mono" data-row>
          {id}
        </Link>
        {Object.entries(labels as Readonly<Record<string, string>>).map(([key, value]) => (
          <span key={key} className="label">
            {key}:{value}
          </span>
        ))}
      </td>
      <td>{workflow}</td>
      <td className="muted">{lease.state === "FREE" ? "" : `${lease.label ?? ""} · token ${lease.token}`}</td>
      <td className="muted">
        <TimeAgo at={createdAt} />
      </td>
      <td className="muted">{endedAt === null ? "" : formatDuration(endedAt - createdAt)}</td>
    </>
  );
}

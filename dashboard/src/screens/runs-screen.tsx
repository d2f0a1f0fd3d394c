import { useQueries, useQuery } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import type { ModelUsage, Run } from "../api.ts";
import { modelUsage } from "../conversation/conversation-queries.ts";
import { formatAmount, formatDuration, formatUsd, plural } from "../format.ts";
import { runPage } from "../queries.ts";
import { isFiltered, type RunSearch } from "../run-search.ts";
import { usePermissions } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { BulkCancel } from "../ui/bulk-cancel.tsx";
import { Empty } from "../ui/empty.tsx";
import { ErrorMessage } from "../ui/error-message.tsx";
import { LabelChip } from "../ui/label-chip.tsx";
import { RunFilters } from "../ui/run-filters.tsx";
import { Screen } from "../ui/screen.tsx";
import { TimeAgo } from "../ui/time-ago.tsx";
import { useWindow, VirtualTable } from "../ui/virtual-table.tsx";

const pageRows = 100;
const rowHeight = 44;

export function RunsScreen() {
  const search = useSearch({ from: "/runs" });
  const { start } = usePermissions();
  return (
    <Screen
      title="Runs"
      about={search.prefix === undefined ? "Newest first." : `Ids that start with ${search.prefix}, in id order.`}
      actions={isFiltered(search) && start ? <BulkCancel search={search} /> : undefined}
    >
      <RunFilters search={search} />
      <RunTable key={JSON.stringify(search)} search={search} />
    </Screen>
  );
}

const columns = ["Status", "Run", "Workflow", "Owner or error", "Started", "Duration"];
const modelColumns = ["Model", "Tokens", "Cost"];

/**
 * A page starts after the last row of the page before it. Only pages with visible rows are fetched, and refetched when
 * something changes. The total is never counted.
 */
function RunTable({ search }: { readonly search: RunSearch }) {
  const [cursors, setCursors] = useState<readonly (number | undefined)[]>([undefined]);
  const [lengths, setLengths] = useState<readonly number[]>([]); // of the pages that were read
  const starts = lengths.map((_length, page) => lengths.slice(0, page).reduce((sum, length) => sum + length, 0));
  const count = lengths.reduce((sum, length) => sum + length, 0);
  const window = useWindow(count, rowHeight);
  // A row beyond those that were read is on the next page.
  const pageAt = (index: number): number =>
    index >= count ? cursors.length - 1 : starts.findLastIndex((start) => start <= index);
  const first = pageAt(window.first);
  const last = Math.max(first, pageAt(window.last + 1));
  const visible = cursors.map((_cursor, page) => page).filter((page) => page >= first && page <= last);
  const pages = useQueries({ queries: visible.map((page) => runPage(search, cursors[page], pageRows)) });
  const dataOf = (page: number) => pages[visible.indexOf(page)]?.data;
  const end = dataOf(cursors.length - 1);
  const endJournal = end?.runs.at(-1)?.journal;
  const endLength = end?.runs.length;
  const endMore = end?.more === true;
  const endPage = cursors.length - 1;
  useEffect(() => {
    if (endLength === undefined) return;
    setLengths((before) => (before[endPage] === endLength ? before : [...before.slice(0, endPage), endLength]));
    // A page is also bounded in bytes: a short page is not necessarily the last one.
    if (endMore && endJournal !== undefined) setCursors((before) => [...before.slice(0, endPage + 1), endJournal]);
  }, [endPage, endLength, endJournal, endMore]);
  const newest = dataOf(0);
  const seam = newest?.more === true ? newest.runs.at(-1)?.journal : undefined;
  const newestLength = newest?.runs.length ?? 0;
  useEffect(() => {
    // New runs pushed older ones off the first page, so the second page starts at another row now.
    if (seam === undefined || cursors.length < 2 || cursors[1] === seam) return;
    setCursors([undefined, seam]);
    setLengths([newestLength]);
  }, [seam, newestLength, cursors]);
  const inWindow = window.items.flatMap(({ index }) => {
    const page = pageAt(index);
    return dataOf(page)?.runs[index - (starts[page] ?? count)]?.id ?? [];
  });
  const usage = useQuery(modelUsage(inWindow)).data;
  // Columns for models only where a visible run has called one.
  const hasModels = usage !== undefined && usage.size > 0;
  const error = pages.find((page) => page.error !== null && page.data === undefined)?.error;
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (cursors.length === 1 && endLength === 0) return <NoRuns filtered={isFiltered(search)} />;
  const more = lengths.length < cursors.length;
  return (
    <div className="runs">
      <VirtualTable
        label="Runs"
        kind="run"
        wide={hasModels}
        columns={[...columns, ...(hasModels ? modelColumns : [])]}
        window={window}
        count={more ? undefined : count}
      >
        {(index) => {
          const page = pageAt(index);
          const run = dataOf(page)?.runs[index - (starts[page] ?? count)];
          return run === undefined ? <td className="ghost" /> : <RunCells run={run} usage={usage} />;
        }}
      </VirtualTable>
      <p className="muted small" role="status">
        {more ? `${Math.max(count, pageRows)} or more runs; scroll to load more` : plural(count, "run")}
      </p>
    </div>
  );
}

function NoRuns({ filtered }: { readonly filtered: boolean }) {
  return (
    <Empty title={filtered ? "No runs match" : "No runs yet"}>
      {filtered ? (
        <Link to="/runs">Show all runs</Link>
      ) : (
        <>
          Start one: <code>durable-tape start my-workflow --input '{"{}"}'</code>
        </>
      )}
    </Empty>
  );
}

/** A run that has ended has no owner: then the cell is free for the reason of a failure. */
function OwnerCell({ run: { lease, error } }: { readonly run: Run }) {
  if (lease.state !== "FREE") return <td className="muted">{`${lease.label ?? ""} · token ${lease.token}`}</td>;
  if (error === undefined) return <td />;
  const text = `${error.code ?? error.name}: ${error.message}`;
  return (
    <td className="run-error" title={text}>
      {text}
    </td>
  );
}

function RunCells({ run, usage }: { readonly run: Run; readonly usage: ReadonlyMap<string, ModelUsage> | undefined }) {
  const spent = usage?.get(run.id);
  const { id, status, workflow, createdAt, endedAt, labels } = run;
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
          <LabelChip key={key} name={key} value={value} />
        ))}
      </td>
      <td>{workflow}</td>
      <OwnerCell run={run} />
      <td className="muted">
        <TimeAgo at={createdAt} />
      </td>
      <td className="muted">{endedAt === null ? "" : formatDuration(endedAt - createdAt)}</td>
      {usage !== undefined && usage.size > 0 && (
        <>
          <td className="muted">{spent?.model}</td>
          <td className="muted">{spent === undefined ? "" : formatAmount(spent.tokens)}</td>
          <td className="muted">{spent?.usd === undefined ? "" : formatUsd(spent.usd / 1_000_000)}</td>
        </>
      )}
    </>
  );
}

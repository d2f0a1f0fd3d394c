import { useQueries } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useRef, useState } from "react";
import { call, type Run } from "../api.ts";
import { lasting } from "../format.ts";
import type { RunSearch } from "../router.tsx";
import { useMay } from "../session.tsx";
import { Badge } from "../ui/badge.tsx";
import { BulkCancel } from "../ui/bulk.tsx";
import { Ago, Empty, Failure, Screen } from "../ui/parts.tsx";

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

export function Runs() {
  const search = useSearch({ from: "/runs" });
  const { status, workflow, label } = search;
  const { start } = useMay();
  const filtered = (status ?? workflow ?? label) !== undefined;
  return (
    <Screen title="Runs" about="Newest first." actions={filtered && start ? <BulkCancel {...search} /> : undefined}>
      <Filters search={search} />
      <RunTable key={`${status} ${workflow} ${label}`} {...search} />
    </Screen>
  );
}

function Filters({ search }: { readonly search: RunSearch }) {
  const go = useNavigate({ from: "/runs" });
  const set = (changed: RunSearch): void => void go({ search: (before) => ({ ...before, ...changed }), replace: true });
  const known = statuses.some(([value]) => value === (search.status ?? ""));
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
      <Wording name="Workflow" value={search.workflow} onChange={(workflow) => set({ workflow })} />
      <Wording
        name="Label"
        placeholder="key:value"
        value={search.label}
        onChange={(label) => set({ label: label?.includes(":") === true ? label : undefined })}
      />
    </form>
  );
}

/** Asks when the person is done typing. */
function Wording({
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
function RunTable({ status, workflow, label }: RunSearch) {
  const box = useRef<HTMLDivElement>(null);
  const [cursors, setCursors] = useState<readonly (number | undefined)[]>([undefined]);
  const [lastRows, setLastRows] = useState(0);
  const count = (cursors.length - 1) * pageRows + lastRows;
  const rows = useVirtualizer({
    count,
    getScrollElement: () => box.current,
    estimateSize: () => rowHeight,
    overscan: 8,
  });
  const items = rows.getVirtualItems();
  const first = Math.floor((items[0]?.index ?? 0) / pageRows);
  const last = Math.min(cursors.length - 1, Math.floor(((items.at(-1)?.index ?? 0) + 1) / pageRows));
  const inSight = cursors.map((_cursor, page) => page).filter((page) => page >= first && page <= last);
  const pages = useQueries({
    queries: inSight.map((page) => ({
      queryKey: ["runs", status, workflow, label, cursors[page]],
      queryFn: () => call("runs.list", { query: { status, workflow, label, before: cursors[page], limit: pageRows } }),
    })),
  });
  const pageOf = (page: number): readonly Run[] | undefined => pages[inSight.indexOf(page)]?.data?.runs;
  const end = pageOf(cursors.length - 1);
  const endJournal = end?.at(-1)?.journal;
  const endLength = end?.length;
  useEffect(() => {
    if (endLength === undefined) return;
    if (endLength < pageRows) setLastRows(endLength);
    else {
      setLastRows(0);
      setCursors((before) => [...before, endJournal]);
    }
  }, [endLength, endJournal]);
  const newest = pageOf(0);
  const seam = newest?.length === pageRows ? newest.at(-1)?.journal : undefined;
  useEffect(() => {
    // New runs have pushed others over the edge of the first page: what follows begins elsewhere now.
    if (seam === undefined) return;
    setCursors((before) => (before.length > 1 && before[1] !== seam ? [undefined, seam] : before));
  }, [seam]);
  const error = pages.find((page) => page.error !== null && page.data === undefined)?.error;
  if (error !== undefined) return <Failure error={error} />;
  if (cursors.length === 1 && endLength === 0) {
    return (
      <Empty title={(status ?? workflow ?? label) ? "No run is like this" : "No run yet"}>
        {(status ?? workflow ?? label) ? (
          <Link to="/runs">Show all runs</Link>
        ) : (
          <>
            Start one: <code>durable-tape start my-workflow --input '{"{}"}'</code>
          </>
        )}
      </Empty>
    );
  }
  const more = cursors.length > 1 || endLength === undefined ? lastRows === 0 : false;
  return (
    <div className="runs">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section className="runs-body" ref={box} tabIndex={0} aria-label="Runs">
        <table className="virtual" aria-rowcount={more ? -1 : count + 1}>
          <thead>
            <tr className="run-row">
              {["Status", "Run", "Workflow", "Owner", "Started", "Took"].map((name) => (
                <th key={name} scope="col">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody style={{ height: rows.getTotalSize() }}>
            {items.map(({ index, start }) => {
              const run = pageOf(Math.floor(index / pageRows))?.[index % pageRows];
              return (
                <tr
                  key={index}
                  className="run-row"
                  aria-rowindex={index + 2}
                  style={{ transform: `translateY(${start}px)`, height: rowHeight }}
                >
                  {run === undefined ? <td className="ghost" /> : <RunCells run={run} />}
                </tr>
              );
            })}
          </tbody>
        </table>
      </section>
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
        <Ago at={createdAt} />
      </td>
      <td className="muted">{endedAt === null ? "" : lasting(endedAt - createdAt)}</td>
    </>
  );
}

import type { Term } from "../api.ts";
import { describeStart, formatDuration, formatTime, wasTaken } from "../format.ts";
import { Table } from "./table.tsx";
import { serverNow } from "./use-now.ts";

/** The term history of a lease, newest first. */
export function TermTable({ terms }: { readonly terms: readonly Term[] }) {
  return (
    <Table
      rows={terms.toReversed()}
      keyOf={({ token }) => token}
      columns={[
        { name: "Token", className: "mono", cell: ({ token }) => token },
        {
          name: "Owner",
          cell: ({ label, reactor }) => (
            <>
              {label}
              <span className="muted small block">{reactor}</span>
            </>
          ),
        },
        {
          name: "Started",
          cell: ({ begunBy, by, why, begunAt }) => (
            <>
              {describeStart(begunBy)}
              {by !== undefined && (
                <span className="muted small block">
                  {by}: {why}
                </span>
              )}
              <span className="muted small block">{formatTime(begunAt)}</span>
            </>
          ),
        },
        { name: "Held for", cell: ({ begunAt, endedAt }) => formatDuration((endedAt ?? serverNow()) - begunAt) },
        {
          name: "Ended",
          cell: ({ end }) => (
            <span className={wasTaken(end) ? "bad-text" : ""}>{end?.replaceAll("_", " ") ?? "current holder"}</span>
          ),
        },
        {
          name: "Renewals",
          cell: ({ renewals, longestGapMs }) => (
            <>
              {renewals}
              {longestGapMs > 0 && (
                <span className="muted small block">longest gap {formatDuration(longestGapMs)}</span>
              )}
            </>
          ),
        },
      ]}
    />
  );
}

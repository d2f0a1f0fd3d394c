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
          cell: ({ startReason, by, auditReason, startedAt }) => (
            <>
              {describeStart(startReason)}
              {by !== undefined && (
                <span className="muted small block">
                  {by}: {auditReason}
                </span>
              )}
              <span className="muted small block">{formatTime(startedAt)}</span>
            </>
          ),
        },
        { name: "Held for", cell: ({ startedAt, endedAt }) => formatDuration((endedAt ?? serverNow()) - startedAt) },
        {
          name: "Ended",
          cell: ({ endReason }) => (
            <span className={wasTaken(endReason) ? "bad-text" : ""}>
              {endReason?.replaceAll("_", " ") ?? "current holder"}
            </span>
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

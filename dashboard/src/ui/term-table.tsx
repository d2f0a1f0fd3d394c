import type { Term } from "../api.ts";
import { describeStart, formatDuration, formatTime, wasTaken } from "../format.ts";
import { Table } from "./table.tsx";
import { serverNow } from "./use-now.ts";

/** The ledger: who held it, from when to when, and why each term began and ended. Newest first. */
export function TermTable({ terms }: { readonly terms: readonly Term[] }) {
  return (
    <Table
      rows={terms.toReversed()}
      keyOf={({ token }) => token}
      columns={[
        { name: "Token", look: "mono", cell: ({ token }) => token },
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
          name: "Began",
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
        { name: "Held", cell: ({ begunAt, endedAt }) => formatDuration((endedAt ?? serverNow()) - begunAt) },
        {
          name: "Ended",
          cell: ({ end }) => (
            <span className={wasTaken(end) ? "bad-text" : ""}>{end?.replaceAll("_", " ") ?? "holds it now"}</span>
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

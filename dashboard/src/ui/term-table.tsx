import type { Term } from "../api.ts";
import { begunOf, isTaken, lasting, momentOf } from "../format.ts";
import { Table } from "./table.tsx";
import { serverNow } from "./use-now.ts";

/** The ledger: who held it, from when to when, and why each term began and ended. Newest first. */
export function Terms({ terms }: { readonly terms: readonly Term[] }) {
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
              {begunOf(begunBy)}
              {by !== undefined && (
                <span className="muted small block">
                  {by}: {why}
                </span>
              )}
              <span className="muted small block">{momentOf(begunAt)}</span>
            </>
          ),
        },
        { name: "Held", cell: ({ begunAt, endedAt }) => lasting((endedAt ?? serverNow()) - begunAt) },
        {
          name: "Ended",
          cell: ({ end }) => (
            <span className={isTaken(end) ? "bad-text" : ""}>{end?.replaceAll("_", " ") ?? "holds it now"}</span>
          ),
        },
        {
          name: "Renewals",
          cell: ({ renewals, longestGapMs }) => (
            <>
              {renewals}
              {longestGapMs > 0 && <span className="muted small block">longest gap {lasting(longestGapMs)}</span>}
            </>
          ),
        },
      ]}
    />
  );
}

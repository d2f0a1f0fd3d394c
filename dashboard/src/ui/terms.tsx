import type { Term } from "../api.ts";
import { begunOf, isTaken, lasting, momentOf } from "../format.ts";
import { serverNow } from "./now.ts";

/** The ledger: who held it, from when to when, and why each term began and ended. Newest first. */
export function Terms({ terms }: { readonly terms: readonly Term[] }) {
  return (
    <div className="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col">Token</th>
            <th scope="col">Owner</th>
            <th scope="col">Began</th>
            <th scope="col">Held</th>
            <th scope="col">Ended</th>
            <th scope="col">Renewals</th>
          </tr>
        </thead>
        <tbody>
          {terms.toReversed().map((term) => (
            <tr key={term.token}>
              <td className="mono">{term.token}</td>
              <td>
                {term.label}
                <span className="muted small block">{term.reactor}</span>
              </td>
              <td>
                {begunOf(term.begunBy)}
                {term.by !== undefined && (
                  <span className="muted small block">
                    {term.by}: {term.why}
                  </span>
                )}
                <span className="muted small block">{momentOf(term.begunAt)}</span>
              </td>
              <td>{lasting((term.endedAt ?? serverNow()) - term.begunAt)}</td>
              <td className={isTaken(term.end) ? "bad-text" : ""}>
                {term.end?.replaceAll("_", " ") ?? "holds it now"}
              </td>
              <td>
                {term.renewals}
                {term.longestGapMs > 0 && (
                  <span className="muted small block">longest gap {lasting(term.longestGapMs)}</span>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

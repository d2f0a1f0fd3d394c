import { useState } from "react";
import type { Term } from "../api.ts";
import { describeStart, formatDuration, formatTime, wasTaken } from "../format.ts";
import { Facts } from "../ui/facts.tsx";
import { Modal } from "../ui/modal.tsx";
import type { Scale } from "./scale.ts";

const colours = 6;

/** One colour for each owner, in the order in which they came. */
export function colourOf(terms: readonly Term[], { owner }: Term): number {
  return [...new Set(terms.map((term) => term.owner))].indexOf(owner) % colours;
}

/** Who owned the run when: one stripe for each lease term. A term that was taken from its owner has a torn edge. */
export function OwnershipBand({
  terms,
  scale,
  now,
}: {
  readonly terms: readonly Term[];
  readonly scale: Scale;
  readonly now: number;
}) {
  const [chosen, setChosen] = useState<Term>();
  return (
    <div className="band">
      {terms.map((term, k) => {
        const from = scale.at(term.begunAt);
        const to = scale.at(term.endedAt ?? now);
        const taken = wasTaken(terms[k - 1]?.end);
        const about = `Token ${term.token}, ${term.label}, ${describeStart(term.begunBy)}${
          term.end === undefined ? ", holds it now" : `, ended: ${term.end.replaceAll("_", " ")}`
        }`;
        return (
          <button
            key={term.token}
            type="button"
            className={`stripe own-${colourOf(terms, term)}${wasTaken(term.end) ? " torn" : ""}${taken ? " taken" : ""}`}
            style={{ left: `${from * 100}%`, width: `${Math.max(0, to - from) * 100}%` }}
            title={about}
            aria-label={about}
            onClick={() => setChosen(term)}
          >
            <span className="stripe-token">{term.token}</span> <span className="stripe-name">{term.label}</span>
          </button>
        );
      })}
      {chosen !== undefined && (
        <Modal side title={`Term ${chosen.token}`} onClose={() => setChosen(undefined)}>
          <TermFacts term={chosen} now={now} />
        </Modal>
      )}
    </div>
  );
}

function TermFacts({ term, now }: { readonly term: Term; readonly now: number }) {
  const { owner, label, reactor, begunAt, begunBy, by, why, endedAt, end, renewals, longestGapMs } = term;
  return (
    <Facts
      of={[
        ["Owner", label],
        [
          "Incarnation",
          <span key="owner" className="mono small">
            {owner}
          </span>,
        ],
        ["Reactor", reactor],
        ["Began", `${describeStart(begunBy)}, ${formatTime(begunAt)}`],
        ...(by === undefined ? [] : [["By hand", `${by}: ${why ?? ""}`] as const]),
        ["Ended", end === undefined ? "holds it now" : `${end.replaceAll("_", " ")}, ${formatTime(endedAt ?? now)}`],
        ["Held", formatDuration((endedAt ?? now) - begunAt)],
        ["Renewals", `${renewals}, longest gap ${formatDuration(longestGapMs)}`],
      ]}
    />
  );
}

const named = 6;

/** The same in words, latest last: who, why, and how it ended. */
export function OwnerList({ terms }: { readonly terms: readonly Term[] }) {
  const last = terms.slice(-named);
  return (
    <ol className="owners" aria-label="Owners">
      {terms.length > named && <li className="muted">{terms.length - named} before</li>}
      {last.map((term) => (
        <li key={term.token}>
          <span className={`swatch own-${colourOf(terms, term)}`} />
          <strong>{term.label}</strong>
          <span className="muted">
            token {term.token}, {term.reactor}: {describeStart(term.begunBy)}
          </span>
          {wasTaken(term.end) && <span className="bad-text">{`lost it: ${term.end}`}</span>}
        </li>
      ))}
    </ol>
  );
}

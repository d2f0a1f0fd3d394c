import { useState } from "react";
import type { Term } from "../api.ts";
import { describeStart, formatDuration, formatTime, wasTaken } from "../format.ts";
import { Facts } from "../ui/facts.tsx";
import { Modal } from "../ui/modal.tsx";
import type { Scale } from "./scale.ts";

const colours = 6;

/** One colour per owner, in order of their first term. */
export function colourOf(terms: readonly Term[], { owner }: Term): number {
  return [...new Set(terms.map((term) => term.owner))].indexOf(owner) % colours;
}

/** Who owned the run when: one stripe per lease term. A term that was taken from its owner has a torn edge. */
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
        const from = scale.at(term.startedAt);
        const to = scale.at(term.endedAt ?? now);
        const isTakeover = wasTaken(terms[k - 1]?.endReason);
        const label = `Token ${term.token}, ${term.label}, ${describeStart(term.startReason)}, ${
          term.endReason === undefined ? "current holder" : `ended: ${term.endReason.replaceAll("_", " ")}`
        }`;
        return (
          <button
            key={term.token}
            type="button"
            className={`stripe own-${colourOf(terms, term)}${wasTaken(term.endReason) ? " torn" : ""}${isTakeover ? " taken" : ""}`}
            style={{ left: `${from * 100}%`, width: `${Math.max(0, to - from) * 100}%` }}
            title={label}
            aria-label={label}
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
  const { owner, label, reactor, startedAt, startReason, by, auditReason, endedAt, endReason, renewals, longestGapMs } =
    term;
  return (
    <Facts
      of={[
        ["Owner", label],
        [
          "Owner id",
          <span key="owner" className="mono small">
            {owner}
          </span>,
        ],
        ["Reactor", reactor],
        ["Started", `${describeStart(startReason)}, ${formatTime(startedAt)}`],
        ...(by === undefined ? [] : [["Requested by", `${by}: ${auditReason ?? ""}`] as const]),
        [
          "Ended",
          endReason === undefined
            ? "current holder"
            : `${endReason.replaceAll("_", " ")}, ${formatTime(endedAt ?? now)}`,
        ],
        ["Held for", formatDuration((endedAt ?? now) - startedAt)],
        ["Renewals", `${renewals}, longest gap ${formatDuration(longestGapMs)}`],
      ]}
    />
  );
}

const maxOwners = 6;

/** The band as text: the latest terms, with the reason why each started. */
export function OwnerList({ terms }: { readonly terms: readonly Term[] }) {
  const latest = terms.slice(-maxOwners);
  return (
    <ol className="owners" aria-label="Owners">
      {terms.length > maxOwners && <li className="muted">{terms.length - maxOwners} earlier</li>}
      {latest.map((term) => (
        <li key={term.token}>
          <span className={`swatch own-${colourOf(terms, term)}`} />
          <strong>{term.label}</strong>
          <span className="muted">
            token {term.token}, {term.reactor}: {describeStart(term.startReason)}
          </span>
          {wasTaken(term.endReason) && <span className="bad-text">{`lost the lease: ${term.endReason}`}</span>}
        </li>
      ))}
    </ol>
  );
}

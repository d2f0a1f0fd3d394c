import type { Evidence } from "../evidence.ts";
import { sweeperName } from "../sweeper.ts";
import { type Invariant, recordsOf } from "./journal.ts";

const journalOf = ({ named }: Evidence): number | undefined => [...named].find(([, name]) => name === sweeperName)?.[0];

/** One token, one incarnation, and one body of it. */
export const oneBodyForAToken: Invariant = ({ sweeps }) => {
  const begun = new Map<bigint, string>();
  return sweeps.flatMap(({ what, token, process }) => {
    if (what !== "begin") return [];
    const before = begun.get(token);
    begun.set(token, process);
    return before === undefined ? [] : [`two bodies had token ${token}: ${before} and ${process}`];
  });
};

/** Two bodies never execute in one process, whatever became of their leases. */
export const oneBodyInAProcess: Invariant = ({ sweeps }) => {
  const running = new Map<string, bigint>();
  return sweeps.flatMap(({ what, token, process }) => {
    const other = running.get(process);
    if (what === "begin") running.set(process, token);
    if (what === "end") running.delete(process);
    return what === "begin" && other !== undefined ? [`${process} began ${token} while ${other} went on`] : [];
  });
};

/**
 * Whoever is certain of its lease has it: nobody acts after a successor has begun. Except where the lease was taken away
 * before its time, by a person or by a restore: of that a holder hears at its next renewal, and the resource refuses it.
 */
export const certaintyIsRight: Invariant = (evidence) => {
  const journal = journalOf(evidence);
  if (journal === undefined) return [];
  const terms = recordsOf(evidence, journal).filter(({ kind }) => kind === "term.started");
  return evidence.sweeps.flatMap(({ what, token, at, process }) => {
    if (what !== "swept" && what !== "refused") return [];
    const next = terms.find((record) => record.token > token);
    if (next?.kind !== "term.started" || next.at >= Math.floor(at)) return [];
    const taken = next.data.reason === "manual" || next.data.previous?.end === "superseded";
    // A term that the restored store has never heard of: its successor found nothing to supersede.
    const forgotten = evidence.lost !== undefined && !terms.some((record) => record.token === token);
    return taken || (forgotten && at < next.at + evidence.plan.ttlMs)
      ? []
      : [`${process} swept under ${token}, which ${next.data.owner} had taken over with ${next.token}`];
  });
};

/** The resource never takes a write of an older term after one of a newer. */
export const sweepsAreInOrder: Invariant = ({ sweeps }) => {
  let highest = -1n;
  return sweeps.flatMap(({ what, token }) => {
    if (what !== "swept") return [];
    const faults = token < highest ? [`a write under ${token} was taken after one under ${highest}`] : [];
    highest = token > highest ? token : highest;
    return faults;
  });
};

/** Every body had a term that the ledger knows. */
export const bodiesHaveTerms: Invariant = (evidence) => {
  const journal = journalOf(evidence);
  const known = new Set(journal === undefined ? [] : recordsOf(evidence, journal).map(({ token }) => token));
  for (const record of evidence.lost?.feed ?? []) known.add(record.token);
  return evidence.sweeps.flatMap(({ what, token }) =>
    what === "begin" && !known.has(token) ? [`a body had token ${token}, which nobody was given`] : [],
  );
};

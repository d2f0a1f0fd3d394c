import type { Evidence } from "../evidence.ts";
import { sweeperName } from "../sweeper.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant, nothing } from "./judge.ts";

const journalOf = ({ named }: Evidence): number | undefined => [...named].find(([, name]) => name === sweeperName)?.[0];

/** One token, one incarnation, and one body of it. */
export const oneBodyForAToken: Invariant = ({ sweeps }) => {
  const begun = new Map<bigint, string>();
  return each(sweeps, ({ what, token, process }) => {
    if (what !== "begin") return exempt;
    const before = begun.get(token);
    begun.set(token, process);
    return before === undefined ? [] : [`two bodies had token ${token}: ${before} and ${process}`];
  });
};

/** Two bodies never execute in one process, whatever became of their leases. */
export const oneBodyInAProcess: Invariant = ({ sweeps }) => {
  const running = new Map<string, bigint>();
  return each(sweeps, ({ what, token, process }) => {
    const other = running.get(process);
    if (what === "begin") running.set(process, token);
    if (what === "end") running.delete(process);
    if (what !== "begin") return exempt;
    return other === undefined ? [] : [`${process} began ${token} while ${other} went on`];
  });
};

/**
 * Whoever is certain of its lease has it: nobody acts after a successor has begun. Except where the lease was taken away
 * before its time, by a person or by a restore: of that a holder hears at its next renewal, and the resource refuses it.
 */
export const heldMeansHeld: Invariant = (evidence) => {
  const journal = journalOf(evidence);
  if (journal === undefined) return nothing;
  const terms = recordsOf(evidence, journal).filter(({ kind }) => kind === "term.started");
  return each(evidence.sweeps, ({ what, token, at, process }) => {
    if (what !== "swept" && what !== "refused") return exempt;
    const next = terms.find((record) => record.token > token);
    if (next?.kind !== "term.started") return exempt;
    if (next.at >= Math.floor(at)) return [];
    const taken = next.data.reason === "manual" || next.data.previous?.end === "superseded";
    // A term that the restored store has never heard of: its successor found nothing to supersede.
    const forgotten = evidence.lost !== undefined && !terms.some((record) => record.token === token);
    return taken || (forgotten && at < next.at + evidence.plan.ttlMs)
      ? exempt
      : [`${process} swept under ${token}, which ${next.data.owner} had taken over with ${next.token}`];
  });
};

/** The resource never takes a write of an older term after one of a newer. */
export const sweepsAreInOrder: Invariant = ({ sweeps }) => {
  let highest = -1n;
  return each(sweeps, ({ what, token }) => {
    if (what !== "swept") return exempt;
    const faults = token < highest ? [`a write under ${token} was taken after one under ${highest}`] : [];
    highest = token > highest ? token : highest;
    return faults;
  });
};

/** Every body had a term that the ledger knows, or knew before the store went back. */
export const bodiesHaveTerms: Invariant = (evidence) => {
  const { lost } = evidence;
  const forgotten = lost?.feed.find((one) => one.kind === "lease.named" && one.data.name === sweeperName)?.journal;
  const journal = journalOf(evidence);
  const known = new Set(journal === undefined ? [] : recordsOf(evidence, journal).map(({ token }) => token));
  for (const record of lost?.feed ?? []) {
    if (record.in === "journal" && record.journal === (forgotten ?? journal)) known.add(record.token);
  }
  return each(evidence.sweeps, ({ what, token }) => {
    if (what !== "begin") return exempt;
    return known.has(token) ? [] : [`a body had token ${token}, which nobody was given`];
  });
};

import type { Evidence } from "../evidence.ts";
import { sweeperName } from "../sweeper.ts";
import { recordsOf } from "./journal.ts";
import { each, exempt, type Invariant, notApplicable } from "./judge.ts";

const journalOf = ({ named }: Evidence): number | undefined => [...named].find(([, name]) => name === sweeperName)?.[0];

/** One token belongs to one process incarnation and one body. */
export const oneBodyForAToken: Invariant = ({ sweeps }) => {
  const started = new Map<bigint, string>();
  return each(sweeps, ({ what, token, process }) => {
    if (what !== "start") return exempt;
    const before = started.get(token);
    started.set(token, process);
    return before === undefined ? [] : [`two bodies had token ${token}: ${before} and ${process}`];
  });
};

/** Two bodies never execute in one process, whatever became of their leases. */
export const oneBodyInAProcess: Invariant = ({ sweeps }) => {
  const running = new Map<string, bigint>();
  return each(sweeps, ({ what, token, process }) => {
    const other = running.get(process);
    if (what === "start") running.set(process, token);
    if (what === "end") running.delete(process);
    if (what !== "start") return exempt;
    return other === undefined ? [] : [`${process} started ${token} while ${other} was still running`];
  });
};

/**
 * A body that asserts its lease still holds it: it never writes after its successor has started. Exception: an operator
 * or a restore ended the lease early. The holder learns that at its next renewal, and the resource refuses its writes.
 */
export const heldMeansHeld: Invariant = (evidence) => {
  const journal = journalOf(evidence);
  if (journal === undefined) return notApplicable;
  const terms = recordsOf(evidence, journal).filter(({ kind }) => kind === "term.started");
  return each(evidence.sweeps, ({ what, token, at, process }) => {
    if (what !== "swept" && what !== "refused") return exempt;
    const next = terms.find((record) => record.token > token);
    if (next?.kind !== "term.started") return exempt;
    if (next.at >= Math.floor(at)) return [];
    const taken = next.data.reason === "manual" || next.data.previous?.endReason === "superseded";
    // The restored store does not know this term, so its successor found nothing to supersede.
    const forgotten = evidence.lost !== undefined && !terms.some((record) => record.token === token);
    return taken || (forgotten && at < next.at + evidence.plan.ttlMs)
      ? exempt
      : [`${process} swept under ${token}, after ${next.data.owner} had taken over with ${next.token}`];
  });
};

/** The resource never accepts a write of an older term after one of a newer term. */
export const sweepsAreInOrder: Invariant = ({ sweeps }) => {
  let highest = -1n;
  return each(sweeps, ({ what, token }) => {
    if (what !== "swept") return exempt;
    const faults = token < highest ? [`a write under ${token} was accepted after one under ${highest}`] : [];
    highest = token > highest ? token : highest;
    return faults;
  });
};

/** Every body has a term in the term history, or had one before the store went back. */
export const bodiesHaveTerms: Invariant = (evidence) => {
  const { lost } = evidence;
  const forgotten = lost?.feed.find((one) => one.kind === "lease.named" && one.data.name === sweeperName)?.journal;
  const journal = journalOf(evidence);
  const known = new Set(journal === undefined ? [] : recordsOf(evidence, journal).map(({ token }) => token));
  for (const record of lost?.feed ?? []) {
    if (record.in === "journal" && record.journal === (forgotten ?? journal)) known.add(record.token);
  }
  return each(evidence.sweeps, ({ what, token }) => {
    if (what !== "start") return exempt;
    return known.has(token) ? [] : [`a body had token ${token}, which was never issued`];
  });
};

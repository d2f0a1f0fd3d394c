import { type Invariant, mainJournals } from "./journal.ts";

/**
 * A fork goes on as if what it keeps stood. So it keeps nothing that the run it comes from has undone, or may still undo,
 * unless whoever made it has named that; these did not.
 */
export const forksKeepWhatStands: Invariant = (evidence) =>
  mainJournals(evidence).flatMap(({ id, records }) => {
    const [created] = records;
    const fork = created?.kind === "run.created" ? created.data.fork : undefined;
    const by = evidence.deeds.find(({ who }) => who === fork?.by);
    if (fork === undefined || by?.what !== "fork unnamed" || evidence.lost !== undefined) return [];
    const kept = new Set(
      records
        .flatMap((one) => (one.kind === "fork.kept" ? one.data.records : []))
        .flatMap(({ data }) => (typeof data === "object" && data !== null && "pos" in data ? [data.pos] : [])),
    );
    return evidence.effects
      .filter(({ run, role, surplus }) => run === fork.journal && role === "compensation" && !surplus)
      .filter(({ pos, status }) => kept.has(pos) && status !== "DISCHARGED")
      .map(({ name, pos, status }) => `${id} keeps ${name} at ${pos}, whose undoing is ${status}`);
  });

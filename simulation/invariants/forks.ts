import { mainJournals } from "./journal.ts";
import { across, each, exempt, type Invariant, nothing } from "./judge.ts";

/**
 * A fork goes on as if what it keeps stood. So it keeps nothing that the run it comes from has undone, or may still undo,
 * unless whoever made it has named that; these did not.
 */
export const forksKeepWhatStands: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ id, records }) => {
    const [created] = records;
    const fork = created?.kind === "run.created" ? created.data.fork : undefined;
    const by = evidence.deeds.find(({ who }) => who === fork?.by);
    if (fork === undefined || by?.what !== "fork unnamed") return nothing;
    const kept = new Set(
      records
        .flatMap((one) => (one.kind === "fork.kept" ? one.data.records : []))
        .flatMap(({ data }) => (typeof data === "object" && data !== null && "pos" in data ? [data.pos] : [])),
    );
    return each(evidence.effects, ({ run, role, surplus, pos, name, status }) => {
      if (run !== fork.journal || role !== "compensation" || surplus || !kept.has(pos)) return exempt;
      return status === "DISCHARGED" ? [] : [`${id} keeps ${name} at ${pos}, whose undoing is ${status}`];
    });
  });

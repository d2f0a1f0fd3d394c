import { mainJournals } from "./journal.ts";
import { across, each, exempt, type Invariant, notApplicable } from "./judge.ts";

/**
 * A fork assumes that the effects it keeps stand. It keeps no effect that its source run has compensated, or may still
 * compensate, unless the caller names it; these callers did not.
 */
export const forksKeepWhatStands: Invariant = (evidence) =>
  across(mainJournals(evidence), ({ id, records }) => {
    const [created] = records;
    const fork = created?.kind === "run.created" ? created.data.fork : undefined;
    const by = evidence.actions.find(({ who }) => who === fork?.by);
    if (fork === undefined || by?.what !== "fork unnamed") return notApplicable;
    const kept = new Set(
      records
        .flatMap((one) => (one.kind === "fork.kept" ? one.data.records : []))
        .flatMap(({ data }) => (typeof data === "object" && data !== null && "pos" in data ? [data.pos] : [])),
    );
    return each(evidence.effects, ({ run, role, surplus, pos, name, status }) => {
      if (run !== fork.journal || role !== "compensation" || surplus || !kept.has(pos)) return exempt;
      return status === "DISCHARGED" ? [] : [`${id} keeps ${name} at ${pos}, whose compensation is ${status}`];
    });
  });

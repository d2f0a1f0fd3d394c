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
    // A kept refusal, for a business key that was taken, claims nothing: the source run may call again in a retry.
    const kept = new Set(
      records
        .flatMap((one) => (one.kind === "fork.kept" ? one.data.records : []))
        .flatMap(({ data }) => (isConfirmation(data) ? [data.pos] : [])),
    );
    return each(evidence.effects, ({ run, role, surplus, pos, name, status }) => {
      if (run !== fork.journal || role !== "compensation" || surplus || !kept.has(pos)) return exempt;
      return status === "DISCHARGED" ? [] : [`${id} keeps ${name} at ${pos}, whose compensation is ${status}`];
    });
  });

/** The outcome of an effect that happened: as it was settled, or as the run received it from its item. */
function isConfirmation(data: unknown): data is { readonly pos: number } {
  if (typeof data !== "object" || data === null || !("pos" in data)) return false;
  return ("to" in data && data.to === "CONFIRMED") || ("status" in data && data.status === "CONFIRMED");
}

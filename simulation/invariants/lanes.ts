import { each, type Invariant } from "./judge.ts";

/** A branch only gets results recorded for its own lane and its own turn. */
export const lanesKeepTheirAnswers: Invariant = ({ laneResults }) =>
  each(laneResults, ({ run, lane, turn, result }) => {
    const of = result as { readonly lane?: unknown; readonly turn?: unknown } | null;
    if (of?.lane === lane && of.turn === turn) return [];
    return [`${run}: ${lane}, turn ${turn} got ${JSON.stringify(result)}`];
  });

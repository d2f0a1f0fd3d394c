import { each, type Invariant } from "./judge.ts";

/** No branch is ever handed what was recorded for another, nor what was recorded for another of its own questions. */
export const lanesKeepTheirAnswers: Invariant = ({ handed }) =>
  each(handed, ({ run, lane, turn, answer }) => {
    const of = answer as { readonly lane?: unknown; readonly turn?: unknown } | null;
    if (of?.lane === lane && of.turn === turn) return [];
    return [`${run}: ${lane}, turn ${turn} was handed ${JSON.stringify(answer)}`];
  });

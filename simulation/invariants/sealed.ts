import { each, type Invariant, notApplicable } from "./judge.ts";

/** No row of the store holds a payload in clear that a replica has encrypted. */
export const payloadsAreSealed: Invariant = ({ sealed, runs }) => {
  if (sealed === undefined) return notApplicable;
  const { hidden, rows } = sealed;
  // The id of a run is no secret, also where code returns one.
  const ids = new Set(runs.map(({ id }) => JSON.stringify(id)));
  return each(hidden, (text) =>
    !ids.has(text) && formsOf(text).some((form) => rows.includes(form))
      ? [`stored in clear: ${text.slice(0, 60)}…`]
      : [],
  );
};

/** Some columns hold the text of a payload, which is quoted once more. */
const formsOf = (text: string): string[] => [text, JSON.stringify(text).slice(1, -1)];

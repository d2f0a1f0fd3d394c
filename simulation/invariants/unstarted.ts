import { encode } from "../../src/base/codec.ts";
import { mainJournals } from "./journal.ts";
import { each, exempt, type Invariant } from "./judge.ts";

/** A run that ends as "cancelled before it began" has nothing but its creation, terms, and the note that it took. */
export const unstartedDidNothing: Invariant = (evidence) =>
  each(mainJournals(evidence), ({ id, records }) => {
    const end = records.at(-1);
    if (end?.kind !== "run.ended" || end.data.status !== "CANCELLED") return exempt;
    if (!encode(end.data.outcome).includes("cancelled before it began")) return exempt;
    const idle = ["term.started", "term.ended", "notes.taken", "operator.action", "run.decided"];
    if (records.slice(1, -1).every(({ kind }) => idle.includes(kind))) return [];
    return [`${id} ended as if it had never started, but has ${records.map(({ kind }) => kind).join(", ")}`];
  });

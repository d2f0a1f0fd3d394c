import { encode } from "../../src/base/codec.ts";
import { type Invariant, mainJournals } from "./journal.ts";

/** Who ends a run as one that never began ends one that nothing was done in: it has its creation, and terms. */
export const unbegunDidNothing: Invariant = (evidence) =>
  mainJournals(evidence).flatMap(({ id, records }) => {
    const end = records.at(-1);
    if (end?.kind !== "run.ended" || end.data.status !== "CANCELLED") return [];
    if (!encode(end.data.outcome).includes("cancelled before it began")) return [];
    if (records.slice(1, -1).every(({ kind }) => kind === "term.started" || kind === "term.ended")) return [];
    return [`${id} was ended as if it had never begun, and had ${records.map(({ kind }) => kind).join(", ")}`];
  });

import { isTapeError } from "../src/model/errors.ts";
import type { FeedRecord } from "../src/store/contract/store.ts";
import type { Evidence } from "./evidence.ts";

const some =
  (test: (record: FeedRecord) => boolean) =>
  ({ feed }: Evidence): boolean =>
    feed.some(test);
/** An earlier generation began with the input of this one. */
const startsWith = (earlier: FeedRecord, later: FeedRecord & { readonly kind: "run.continued" }): boolean =>
  earlier.kind === "run.continued" && earlier.seq < later.seq && earlier.data.inputHash === later.data.inputHash;

/** States of runs that continue as new. */
export const generationMarks: Readonly<Record<string, (evidence: Evidence) => boolean>> = {
  "run continued as new": some((r) => r.kind === "run.continued"),
  "signal carried into the next generation": some((r) => r.kind === "run.continued" && r.data.notes.length > 0),
  "continued with the same input": ({ feed }) =>
    feed.some((r) => r.kind === "run.continued" && feed.some((o) => o.journal === r.journal && startsWith(o, r))),
  "run not continued because of a child": some(
    (r) => r.kind === "step.done" && isTapeError(r.data.error, "TAPE_OPEN_CHILDREN"),
  ),
  "later generation driven by another process": ({ wakes }) =>
    wakes.some(({ begins, journal, process }) =>
      wakes.some((one) => begins > 1 && one.journal === journal && one.begins === begins && one.process !== process),
    ),
};

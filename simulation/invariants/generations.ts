import type { FeedRecord } from "../../src/store/contract/store.ts";
import { drawStep } from "../generations.ts";
import { mainJournals, recordsOf } from "./journal.ts";
import { across, each, exempt, type Invariant } from "./judge.ts";

const isContinued = ({ kind }: FeedRecord): boolean => kind === "run.continued";

/** The first record of the run, and a record that arrives between the claim and the read. */
const beside = 2;

/** A drive reads the generation that it drives, however long the history is. Applies to runs that have continued. */
export const wakeIsBounded: Invariant = (evidence) =>
  each(evidence.wakes, ({ process, journal, begins, records }) => {
    if (begins === 1 || records === 0) return exempt;
    const rest = recordsOf(evidence, journal).slice(begins);
    const next = rest.findIndex(isContinued);
    const own = 1 + (next < 0 ? rest.length : next);
    return records <= own + beside
      ? []
      : [`${process} read ${records} records of journal ${journal} to drive a generation of ${own}`];
  });

/** Each generation draws random values of its own, also with the same input. */
export const drawsAreUnique: Invariant = (evidence) => {
  const drawn = new Map<unknown, string>();
  return across(mainJournals(evidence), ({ id, records }) =>
    each(records, (record) => {
      if (record.kind !== "step.done" || record.data.name !== drawStep) return exempt;
      const { value, pos } = record.data;
      const before = drawn.get(value);
      const place = `${id} at ${pos}`;
      drawn.set(value, place);
      return before === undefined ? [] : [`${place} drew ${value}, as ${before} did`];
    }),
  );
};

import { changedLabels, type Labels } from "../../src/model/labels.ts";
import { mainJournals } from "./journal.ts";
import { combine, each, type Invariant } from "./judge.ts";

/** A run shows the labels of its records, and the list of each label has exactly the runs with it. */
export const labelsAreProjected: Invariant = (evidence) => {
  const expected = new Map<string, Labels>();
  for (const { id, records } of mainJournals(evidence)) {
    for (const record of records) {
      if (record.kind === "run.created") expected.set(id, record.data.labels ?? {});
      if (record.kind === "labels.set") expected.set(id, changedLabels(expected.get(id) ?? {}, record.data));
    }
  }
  const labelled = evidence.runs.filter(({ id, labels }) => Object.keys({ ...labels, ...expected.get(id) }).length > 0);
  const views = each(labelled, ({ id, labels }) => {
    const [found, given] = [labels, expected.get(id) ?? {}].map((one) => JSON.stringify(Object.entries(one).sort()));
    return found === given ? [] : [`run ${id} shows the labels ${found}, its records give ${given}`];
  });
  const known = new Set(evidence.runs.map(({ id }) => id));
  const lists = each(evidence.labelLists, ({ key, value, runs }) => {
    const given = [...expected].filter(([id, labels]) => known.has(id) && labels[key] === value).map(([id]) => id);
    return runs.toSorted().join() === given.sort().join()
      ? []
      : [`the list of ${key} ${value} has ${runs.join() || "no run"}, the records give ${given.join() || "none"}`];
  });
  return combine([views, lists]);
};

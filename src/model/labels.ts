/** Labels of a run, by which lists find it. */
export type Labels = Readonly<Record<string, string>>;

/** The labels of a run after a `labels.set` record. A label that changes keeps its place. */
export function changedLabels(before: Labels, { set, unset }: LabelChange): Labels {
  const after: Record<string, string> = Object.fromEntries(Object.entries(before).concat(Object.entries(set)));
  for (const key of unset) delete after[key];
  return after;
}

export interface LabelChange {
  readonly set: Labels;
  readonly unset: readonly string[];
}

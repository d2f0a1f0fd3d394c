import type { Change } from "../../../model/changes.ts";
import { TapeError } from "../../../model/errors.ts";
import { changedLabels, type Labels } from "../../../model/labels.ts";
import { type Plan, query, queryRow, queryRows } from "../plan.ts";

/** Labels of runs: `runs.labels` for display, a row of `run_labels` for each label, by which lists find the run. */

/** Under the fence of the run, so that no other change of its labels can intervene. */
export function* setLabels({ run, ...change }: Extract<Change, { do: "labels.set" }>, tenant: string): Plan<void> {
  const row = yield* queryRow("labels.find", { run, tenant });
  const set = JSON.parse(change.set) as Labels;
  const unset = JSON.parse(change.unset) as string[];
  const labels = changedLabels(JSON.parse(row?.labels ?? "{}") as Labels, { set, unset });
  const count = Object.keys(labels).length;
  if (count > change.max) {
    const message = `the run would have ${count} labels, at most ${change.max} are allowed`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "labels" });
  }
  const keys = JSON.stringify([...unset, ...Object.keys(set)]);
  yield* query("labels.set", { run, labels: JSON.stringify(labels) });
  yield* query("labels.drop", { run, keys });
  yield* query("labels.put", { run, tenant, labels: row?.listed ? change.set : JSON.stringify(labels) });
}

/** Runs adopted at once: the transaction stays short. */
const adoptedAtOnce = 1_000;

/**
 * Lists the labels of runs that processes of the previous version have created since the migration. Until then
 * `run.unlisted` finds them.
 */
export function* adoptLabels(): Plan<void> {
  const rows = yield* queryRows("labels.unlisted", { limit: adoptedAtOnce });
  if (rows.length === 0) return;
  const journals = JSON.stringify(rows.map(({ journal }) => Number(journal)));
  yield* query("labels.adopt", { journals });
  yield* query("labels.listed", { journals });
}

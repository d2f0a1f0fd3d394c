import { TapeError } from "../../model/errors.ts";
import { changedLabels, type Labels } from "../../model/labels.ts";
import type { Operations } from "./operations.ts";
import { record } from "./talk.ts";

/** The labels of each run that its code has set so far, in this drive. */
const known = new WeakMap<Operations["drive"], Labels>();

/** The labels that the run has now, for its next generation. */
export const labelsOf = (drive: Operations["drive"]): Labels | undefined =>
  known.get(drive) ?? drive.history.created.labels;

/** Changes labels of the run: a record that no operation waits for, checked at the call. */
export function label(ops: Operations, labels: unknown): void {
  const { history, bodyEnded, options } = ops.drive;
  if (bodyEnded) return; // as in now()
  if (typeof labels !== "object" || labels === null || Array.isArray(labels)) {
    throw new TapeError("TAPE_BAD_INPUT", "tape.label: pass an object of labels", { field: "labels" });
  }
  ops.refuseNested("labels.set", "labels");
  const entries = Object.entries(labels as Record<string, string | undefined>);
  const set = Object.fromEntries(entries.filter((entry): entry is [string, string] => entry[1] !== undefined));
  const unset = entries.filter(([, value]) => value === undefined).map(([key]) => key);
  if (entries.length === 0) return;
  // A fork starts with labels that its kept calls set, too: those calls must not count twice.
  const { created } = history;
  const before = known.get(ops.drive) ?? (created.fork === undefined ? created.labels : undefined) ?? {};
  const after = changedLabels(before, { set, unset });
  const max = options.store.limits.labels;
  if (Object.keys(after).length > max) {
    const message = `tape.label: a run has at most ${max} labels, this would be ${Object.keys(after).length}`;
    throw new TapeError("TAPE_TOO_LARGE", message, { limit: "labels" });
  }
  record(ops, "labels", (pos) => ({ kind: "labels.set", data: { pos, set, unset } }));
  known.set(ops.drive, after);
}

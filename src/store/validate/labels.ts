import { TapeError } from "../../model/errors.ts";
import type { LabelChange } from "../../model/labels.ts";
import type { Limits } from "../../model/limits.ts";
import type { LabelFilter } from "../contract/list.ts";
import { checkName, checkObject, checkText } from "./basic.ts";

/** Values of one key that a list may name, like the labels of a run. */
const maxValues = 16;

/** The labels of a start or a record. */
export function checkLabels(what: string, labels: unknown, limits: Limits): void {
  checkObject(what, labels);
  const entries = Object.entries(labels as Record<string, unknown>);
  if (entries.length > limits.labels) throw tooMany(what, entries.length, limits.labels, "labels");
  for (const [key, value] of entries) checkLabel(what, key, value, limits);
}

/** Removed labels are as few as a run can have, and none of them is set by the same record. */
export function checkUnset({ set, unset }: LabelChange, limits: Limits): void {
  if (unset.length > limits.labels) throw tooMany("unset", unset.length, limits.labels, "labels");
  for (const key of unset) {
    checkLabelKey("unset", key, limits);
    if (!Object.hasOwn(set, key)) continue;
    throw new TapeError("TAPE_BAD_INPUT", `labels.set: ${key} is set and removed`, { field: "unset" });
  }
}

export function checkLabel(what: string, key: unknown, value: unknown, limits: Limits): void {
  checkLabelKey(what, key, limits);
  checkText(what, value, limits);
  checkLength(what, value, limits);
}

function checkLabelKey(what: string, key: unknown, limits: Limits): void {
  checkName(what, key, limits);
  checkLength(what, key, limits);
}

function checkLength(what: string, text: string, limits: Limits): void {
  if (text.length <= limits.labelLength) return;
  const message = `${what}: a label has ${text.length} characters, at most ${limits.labelLength} are allowed`;
  throw new TapeError("TAPE_TOO_LARGE", message, { field: what, limit: "labelLength" });
}

function tooMany(what: string, found: number, max: number, limit: string): TapeError {
  return new TapeError("TAPE_TOO_LARGE", `${what}: ${found} labels, at most ${max} are allowed`, {
    field: what,
    limit,
  });
}

export function checkLabelFilter(labels: LabelFilter, limits: Limits): void {
  checkObject("labels", labels);
  const entries = Object.entries(labels);
  if (entries.length > limits.labels) throw tooMany("labels", entries.length, limits.labels, "labels");
  for (const [key, given] of entries) {
    const values: readonly string[] = Array.isArray(given) ? given : [given as string];
    if (values.length === 0) {
      throw new TapeError("TAPE_BAD_INPUT", `labels.${key.slice(0, 64)} needs a value`, { field: "labels" });
    }
    if (values.length > maxValues) {
      const message = `labels: ${values.length} values of one key, at most ${maxValues} are allowed`;
      throw new TapeError("TAPE_TOO_LARGE", message, { field: "labels", limit: "labelValues" });
    }
    for (const value of values) checkLabel("labels", key, value, limits);
  }
}

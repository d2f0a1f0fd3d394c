import type { StoredValue } from "../../src/store/contract/store.ts";
import type { ValueOperation, ValueOutput } from "../value-clients.ts";
import { each, type Invariant, mayBeForgotten, together } from "./judge.ts";

const words = ({ version, value, deleted }: Pick<StoredValue, "version" | "value" | "deleted">): string =>
  deleted ? `${version} deleted` : `${version} ${String(value)}`;

/**
 * A deletion erases all that a key has been, and nothing else: the history begins with the last deletion, or where the
 * key was first written, and every acknowledged write since is in it.
 */
export const deletionsErase: Invariant = ({ keptValues, values, valueLogs, lost }) => {
  const remembered = values.filter(({ asked, answered }) => !mayBeForgotten(lost, asked, answered));
  return together([
    each(keptValues, ({ key, expected, found }) => {
      const [is, should] = [found, expected].map((all) => all.map(words).join(", "));
      return is === should ? [] : [`the neighbours' ${key} has been: ${is}; not: ${should}`];
    }),
    each(valueLogs, ({ key, found }) => faultsOf(key, found, remembered)),
  ]);
};

const isDone = (output: ValueOutput | undefined): output is Exclude<ValueOutput, "conflict"> =>
  output !== undefined && output !== "conflict";

/** Of answers that were lost nobody knows whether they were of something that was done. */
function faultsOf(key: string, found: readonly StoredValue[], values: readonly ValueOperation[]): string[] {
  const first = found[0];
  if (first === undefined) {
    const written = values.some(({ input, output }) => input.key === key && input.op === "put" && isDone(output));
    return written ? [`${key}: nothing is left of it`] : [];
  }
  const faults = found.flatMap(({ version }, k) =>
    version === first.version + k ? [] : [`${key}: version ${version} is in the place of ${first.version + k}`],
  );
  if (first.version > 1 && !first.deleted) faults.push(`${key}: its history begins with version ${first.version}`);
  for (const { version, deleted } of found.slice(1))
    if (deleted) faults.push(`${key}: version ${version} deleted it, and what was before is still there`);
  const kept = new Map(found.map((one) => [one.version, one]));
  for (const { input, output } of values) {
    if (input.key !== key || input.op === "read" || !isDone(output)) continue;
    const { version } = output;
    const now = kept.get(version);
    const same = input.op === "delete" ? now?.deleted === true : now?.value === input.value;
    if (version >= first.version && !same) faults.push(`${key}: version ${version} is ${now ? words(now) : "gone"}`);
    if (version > first.version && input.op === "delete")
      faults.push(`${key}: ${version} deleted it, and erased nothing`);
  }
  return faults;
}

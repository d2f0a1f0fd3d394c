import type { StoredValue } from "../../src/store/contract/store.ts";
import type { ValueOperation, ValueOutput } from "../value-clients.ts";
import { combine, each, type Invariant, mayBeForgotten } from "./judge.ts";

const formatted = ({ version, value, deleted }: Pick<StoredValue, "version" | "value" | "deleted">): string =>
  deleted ? `${version} deleted` : `${version} ${String(value)}`;

/**
 * A deletion erases the whole history of its key, and nothing else. The history starts with the last deletion, or the
 * first write, and contains every acknowledged write since.
 */
export const deletionsErase: Invariant = ({ keptValues, values, valueLogs, lost }) => {
  const remembered = values.filter(({ requestedAt, answeredAt }) => !mayBeForgotten(lost, requestedAt, answeredAt));
  return combine([
    each(keptValues, ({ key, expected, found }) => {
      const [is, should] = [found, expected].map((all) => all.map(formatted).join(", "));
      return is === should ? [] : [`the neighbours' ${key} has the history: ${is}; expected: ${should}`];
    }),
    each(valueLogs, ({ key, found }) => faultsOf(key, found, remembered)),
  ]);
};

const isDone = (output: ValueOutput | undefined): output is Exclude<ValueOutput, "conflict"> =>
  output !== undefined && output !== "conflict";

/** Operations whose responses were lost are ignored: they may or may not have happened. */
function faultsOf(key: string, found: readonly StoredValue[], values: readonly ValueOperation[]): string[] {
  const first = found[0];
  if (first === undefined) {
    const written = values.some(({ input, output }) => input.key === key && input.op === "put" && isDone(output));
    return written ? [`${key}: its history is empty`] : [];
  }
  const faults = found.flatMap(({ version }, k) =>
    version === first.version + k ? [] : [`${key}: version ${version} stands in place of ${first.version + k}`],
  );
  if (first.version > 1 && !first.deleted) faults.push(`${key}: its history starts with version ${first.version}`);
  for (const { version, deleted } of found.slice(1))
    if (deleted) faults.push(`${key}: version ${version} deleted it, but earlier versions remain`);
  const kept = new Map(found.map((one) => [one.version, one]));
  for (const { input, output } of values) {
    if (input.key !== key || input.op === "read" || !isDone(output)) continue;
    const { version } = output;
    const now = kept.get(version);
    const same = input.op === "delete" ? now?.deleted === true : now?.value === input.value;
    if (version >= first.version && !same)
      faults.push(`${key}: version ${version} is ${now ? formatted(now) : "gone"}`);
    if (version > first.version && input.op === "delete")
      faults.push(`${key}: version ${version} deleted it, but erased nothing`);
  }
  return faults;
}

import type { SequentialModel } from "../../testkit/linearizable.ts";
import { checkLinearizable } from "../../testkit/linearizable.ts";
import type { RewindLoss } from "../rewinder.ts";
import type { ValueInput, ValueOperation, ValueOutput } from "../value-clients.ts";
import { across, each, exempt, type Invariant } from "./judge.ts";

interface State {
  readonly version: number;
  /** undefined: none exists, or it was deleted. */
  readonly value: unknown;
}

/** One value as the contract defines it: versions grow by one, also across a deletion. */
const model: SequentialModel<State, ValueInput, ValueOutput> = {
  init: () => ({ version: 0, value: undefined }),
  key: ({ version, value }) => `${version} ${String(value)}`,
  effect: (input) => JSON.stringify(input),
  step(state, input, output) {
    if (input.op === "read") {
      const same = output === undefined || (output !== "conflict" && output.version === state.version);
      return { ok: same && (output === undefined || valueIn(output) === state.value), state };
    }
    const fits = accepts(state, input);
    if (output === undefined) return { ok: true, state: fits ? written(state, input) : state };
    if (output === "conflict") return { ok: !fits, state };
    return { ok: fits && output.version === state.version + 1, state: written(state, input) };
  },
};

const valueIn = (output: ValueOutput): unknown => (output === "conflict" ? undefined : output.value);

function accepts({ version, value }: State, input: Exclude<ValueInput, { op: "read" }>): boolean {
  if (input.op === "delete") return version === input.version && value !== undefined;
  if (input.when === "unconditional") return true;
  return input.when === "must_create" ? value === undefined : input.when.version === version;
}

const written = ({ version }: State, input: Exclude<ValueInput, { op: "read" }>): State => ({
  version: version + 1,
  value: input.op === "delete" ? undefined : input.value,
});

/**
 * The histories of a value that must be linearizable. A store that went back has two: the one until then, and the one
 * that starts from its snapshot. An operation that overlaps the lost interval may or may not be in the second, like any
 * operation whose response was lost.
 */
function historiesOf(values: readonly ValueOperation[], lost: RewindLoss | undefined): ValueOperation[][] {
  if (lost === undefined) return [[...values]];
  const unknown = ({ output: _, ...one }: ValueOperation): ValueOperation => ({
    ...one,
    ret: Number.POSITIVE_INFINITY,
  });
  const until = values.filter(({ requestedAt }) => requestedAt <= lost.to);
  return [
    until.map((one) => (one.answeredAt < lost.to ? one : unknown(one))),
    values.map((one) => (one.answeredAt < lost.from || one.requestedAt > lost.to ? one : unknown(one))),
  ];
}

/** One order of all writes and reads of a value explains every client's results. */
export const valuesAreLinearizable: Invariant = ({ values, lost }) =>
  across(
    Map.groupBy(values, ({ input }) => input.key),
    ([key, own]) =>
      each(historiesOf(own, lost), (history) => {
        if (history.length < 2) return exempt;
        const verdict = checkLinearizable(model, history);
        return verdict.ok ? [] : [`${key}: ${verdict.reason}`];
      }),
  );

/**
 * A watcher sees every transition once, in order, each from the previous value, except for what a deletion erased.
 * Where the store went back, a watcher sees one break, between the two histories.
 */
export const watchersSeeAll: Invariant = ({ watched, lost }) =>
  across(watched, (seen) => {
    let breaks = lost === undefined ? 0 : 1;
    return each(seen.slice(1), ({ version, previous, deleted }, k) => {
      const before = seen[k]!;
      const left = before.deleted ? undefined : before.value;
      const follows = version === before.version + 1 || (deleted && version > before.version);
      if (follows && previous === left) return [];
      if (breaks-- > 0) return exempt;
      return follows
        ? [`version ${version} came from ${String(previous)}, not from ${String(left)}`]
        : [`version ${version} was seen after ${before.version}`];
    });
  });

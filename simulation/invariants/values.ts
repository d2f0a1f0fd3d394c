import type { SequentialModel } from "../../testkit/linearizable.ts";
import { checkLinearizable } from "../../testkit/linearizable.ts";
import type { ValueInput, ValueOperation, ValueOutput } from "../value-clients.ts";
import type { Invariant } from "./journal.ts";

interface State {
  readonly version: number;
  /** undefined: there is none, or it was deleted. */
  readonly value: unknown;
}

/** One value as the contract has it: versions grow by one, also across a deletion. */
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

/** There is one order of all writes and reads of a value that explains what each client was told. */
export const valuesAreLinearizable: Invariant = ({ values, lost }) => {
  if (lost !== undefined) return []; // what was acknowledged may be gone
  const keys = [...new Set(values.map(({ input }) => input.key))];
  return keys.flatMap((key) => {
    const history: ValueOperation[] = values.filter(({ input }) => input.key === key);
    const verdict = checkLinearizable(model, history);
    return verdict.ok ? [] : [`${key}: ${verdict.reason}`];
  });
};

/** Whoever watches sees every transition once, in order, each from what the one before it left; but for what a deletion erased. */
export const watchersSeeAll: Invariant = ({ watched, lost }) => {
  if (lost !== undefined) return [];
  return watched.flatMap((seen) =>
    seen.slice(1).flatMap(({ version, previous, deleted }, k) => {
      const before = seen[k]!;
      if (version !== before.version + 1 && !(deleted && version > before.version))
        return [`version ${version} was seen after ${before.version}`];
      const left = before.deleted ? undefined : before.value;
      return previous === left ? [] : [`version ${version} came from ${String(previous)}, not from ${String(left)}`];
    }),
  );
};

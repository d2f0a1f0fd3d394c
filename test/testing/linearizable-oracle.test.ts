import { expect, test } from "vitest";
import { type LeaseInput, type LeaseOutput, leaseModel } from "../../testkit/lease-model.ts";
import { checkLinearizable, type Operation, type SequentialModel } from "../../testkit/linearizable.ts";
import { lcg, record } from "./lease-history.ts";

test.each<[string, (seed: number) => boolean[]]>([
  ["a lease", (seed) => bothWays(leaseModel, scrambledLease(seed))],
  ["a register", (seed) => bothWays(registerModel, anyRegister(seed))],
])("agrees with trying all orders: %s", (_, compare) => {
  const verdicts = { accepted: 0, rejected: 0 };
  for (let seed = 0; seed < 1000; seed++) {
    const [checked, expected] = compare(seed);
    expect([seed, checked]).toEqual([seed, expected]);
    verdicts[expected ? "accepted" : "rejected"]++;
  }
  expect(verdicts.accepted).toBeGreaterThan(200);
  expect(verdicts.rejected).toBeGreaterThan(200);
});

function bothWays<S, I, O>(model: SequentialModel<S, I, O>, history: Operation<I, O>[]): boolean[] {
  return [checkLinearizable(model, history).ok, anyOrder(model, history, model.init())];
}

/** The definition itself, too slow for more than a few operations. */
function anyOrder<S, I, O>(model: SequentialModel<S, I, O>, left: readonly Operation<I, O>[], state: S): boolean {
  if (left.every((op) => op.ret === Infinity)) return true;
  const firstReturn = Math.min(...left.map((op) => op.ret));
  return left.some((op) => {
    if (op.call > firstReturn) return false;
    const next = model.step(state, op.input, op.ret === Infinity ? undefined : op.output);
    return next.ok && anyOrder(model, left.toSpliced(left.indexOf(op), 1), next.state);
  });
}

/** A short correct history with some times stretched and one result swapped for another. */
function scrambledLease(seed: number): Operation<LeaseInput, LeaseOutput>[] {
  const random = lcg(seed);
  const history = record({ seed, operations: 9, unknown: 0.1 }).history.slice(0, 9);
  const outputs = history.flatMap(({ output }) => (output === undefined ? [] : [output]));
  const victim = Math.floor(random() * history.length);
  return history.map((op, i) => ({
    ...op,
    ret: op.ret + Math.floor(random() * 3),
    ...(i === victim && outputs.length > 0 ? { output: outputs[Math.floor(random() * outputs.length)]! } : {}),
  }));
}

/** Compare-and-set on a few values reaches the same state in many ways, unlike tokens, which only increase. */
interface Cas {
  readonly from: number;
  readonly to: number;
}

const registerModel: SequentialModel<number, Cas, boolean> = {
  init: () => 0,
  key: String,
  step: (state, { from, to }, output) =>
    output === undefined || output === (state === from)
      ? { ok: true, state: state === from ? to : state }
      : { ok: false, state },
};

function anyRegister(seed: number): Operation<Cas, boolean>[] {
  const random = lcg(seed);
  const below = (n: number) => Math.floor(random() * n);
  return Array.from({ length: 8 }, () => {
    const input = { from: below(3), to: below(3) };
    const call = below(12);
    return random() < 0.4
      ? { call, ret: Infinity, input }
      : { call, ret: call + below(8), input, output: random() < 0.8 };
  });
}

import { describe, expect, it } from "vitest";
import { explained } from "../../testkit/conformance/concurrency.ts";
import { checkLinearizable, type Operation } from "../../testkit/linearizable.ts";
import { type TermInput, type TermOutput, termModelFrom } from "../../testkit/term-model.ts";

const model = termModelFrom({ token: 0n, held: false, head: 1, under: 0n });

/** One after another, none concurrent. */
function verdictOf(...steps: readonly (readonly [TermInput, TermOutput])[]): boolean {
  const history = steps.map(
    ([input, output], k): Operation<TermInput, TermOutput> => ({ call: 2 * k, ret: 2 * k + 1, input, output }),
  );
  return checkLinearizable(model, history).ok;
}

const acquire = { op: "acquire", owner: "a" } as const;
const takeover = { op: "takeover", owner: "b" } as const;
const append = (token: bigint, seq: number) => ({ op: "append", token, seq }) as const;
const release = (token: bigint, seq: number) => ({ op: "release", token, seq }) as const;
const first = [acquire, { token: 1n, head: 2 }] as const;

describe("the model of a lease whose terms are recorded", () => {
  it("accepts a lease from acquire to release", () => {
    const life = verdictOf(
      first,
      [append(1n, 3), "ok"],
      [acquire, "refused"],
      [takeover, { token: 2n, head: 4 }],
      [append(1n, 5), "fenced"],
      [append(2n, 9), "not_head"],
      [release(2n, 5), "ok"],
      [{ op: "read lease" }, { token: 3n, held: false }],
      [{ op: "read head" }, { head: 5, under: 2n }],
      [append(2n, 6), "fenced"],
      [acquire, { token: 4n, head: 6 }],
    );
    expect(life).toBe(true);
  });

  it("accepts a takeover that ends a term before another claimant starts one", () => {
    const doom = { op: "doom", owner: "b" } as const;
    const life = verdictOf(
      first,
      [doom, "refused"],
      [append(1n, 3), "fenced"],
      [{ op: "read lease" }, { token: 1n, held: true }],
      [acquire, { token: 2n, head: 3 }],
      [append(2n, 4), "ok"],
    );
    expect(life).toBe(true);
    expect(verdictOf(first, [doom, "refused"], [append(1n, 3), "ok"])).toBe(false);
  });

  it.each<[string, ...(readonly [TermInput, TermOutput])[]]>([
    ["a stale write that is accepted", first, [takeover, { token: 2n, head: 3 }], [append(1n, 4), "ok"]],
    ["a token that is granted twice", first, [release(1n, 3), "ok"], [acquire, { token: 1n, head: 4 }]],
    [
      "a release that keeps the token",
      first,
      [release(1n, 3), "ok"],
      [{ op: "read lease" }, { token: 1n, held: false }],
    ],
    ["a write after one's own release", first, [release(1n, 3), "ok"], [append(1n, 4), "ok"]],
    ["two holders", first, [acquire, { token: 2n, head: 3 }]],
    ["a term without a record", first, [append(1n, 2), "ok"]],
    ["a write that is lost", first, [append(1n, 3), "ok"], [{ op: "read head" }, { head: 2, under: 1n }]],
    ["a stale owner that learns the head", first, [takeover, { token: 2n, head: 3 }], [append(1n, 9), "not_head"]],
    ["a result of another operation", first, [{ op: "read lease" }, { token: 1n, head: 2 }]],
  ])("refuses %s", (_, ...steps) => expect(verdictOf(...steps)).toBe(false));
});

describe("a history with a takeover that lost its race", () => {
  const initial = { token: 0n, held: false, head: 1, under: 0n };
  const taken = { call: 1, ret: 2, input: acquire, output: { token: 1n, head: 2 } } as const;
  const lost = { call: 3, ret: 8, input: takeover, output: "refused" } as const;
  const faster = { call: 4, ret: 7, input: { op: "acquire", owner: "c" }, output: { token: 2n, head: 3 } } as const;

  it("is explained only if the takeover may have ended the term", () => {
    expect(explained(initial, [taken, lost, faster]).ok).toBe(true);
    expect(explained(initial, [taken, faster]).ok).toBe(false);
  });

  it("places the end of the term within the takeover, not before or after", () => {
    const late = { ...faster, call: 9, ret: 10, output: { token: 3n, head: 4 } } as const;
    expect(explained(initial, [taken, lost, faster, late]).ok).toBe(false);
  });
});

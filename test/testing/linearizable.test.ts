import { describe, expect, test } from "vitest";
import { type LeaseInput, type LeaseOutput, leaseModel, leaseModelFrom } from "../../testkit/lease-model.ts";
import { checkLinearizable, type Operation, UndecidedError } from "../../testkit/linearizable.ts";
import { type Bug, record } from "./lease-history.ts";

type Op = Operation<LeaseInput, LeaseOutput>;

const acquire = (owner: string): LeaseInput => ({ op: "acquire", owner });
const takeover = (owner: string): LeaseInput => ({ op: "takeover", owner });
const append = (token: bigint, seq: number): LeaseInput => ({ op: "append", token, seq });
const release = (token: bigint): LeaseInput => ({ op: "release", token });
const read: LeaseInput = { op: "read" };

/** One after another; an output of "?" is unknown. */
function inTurn(...ops: [LeaseInput, LeaseOutput | "?"][]): Op[] {
  return ops.map(([input, output], i) =>
    output === "?" ? { call: i, ret: Infinity, input } : { call: i, ret: i + 0.5, input, output },
  );
}

const accepts = (history: Op[]) => expect(checkLinearizable(leaseModel, history)).toEqual({ ok: true });
const rejects = (history: Op[]) => expect(checkLinearizable(leaseModel, history).ok).toBe(false);

describe("the lease, one operation after the other", () => {
  test("follows the protocol", () => {
    accepts(
      inTurn(
        [read, { token: 0n, head: 0 }],
        [acquire("a"), 1n],
        [acquire("b"), "refused"],
        [acquire("a"), "refused"],
        [append(1n, 1), "ok"],
        [append(1n, 1), "not_head"],
        [takeover("b"), 2n],
        [append(1n, 2), "fenced"],
        [release(1n), "fenced"],
        [append(2n, 2), "ok"],
        [release(2n), "ok"],
        [append(2n, 3), "fenced"],
        [append(3n, 3), "fenced"],
        [read, { head: 2, token: 3n }],
        [acquire("a"), 4n],
      ),
    );
  });

  test.each<[string, Op[]]>([
    ["an unfenced append", inTurn([acquire("a"), 1n], [takeover("b"), 2n], [append(1n, 1), "ok"])],
    ["an append after one's own release", inTurn([acquire("a"), 1n], [release(1n), "ok"], [append(1n, 1), "ok"])],
    ["a stale release", inTurn([acquire("a"), 1n], [takeover("b"), 2n], [release(1n), "ok"])],
    ["a token issued twice", inTurn([acquire("a"), 1n], [takeover("b"), 1n])],
    ["a token reused after a release", inTurn([acquire("a"), 1n], [release(1n), "ok"], [acquire("b"), 2n])],
    ["two holders", inTurn([acquire("a"), 1n], [acquire("b"), 2n])],
    ["a lost append", inTurn([acquire("a"), 1n], [append(1n, 1), "ok"], [read, { token: 1n, head: 0 }])],
    ["a lost append, overwritten", inTurn([acquire("a"), 1n], [append(1n, 1), "ok"], [append(1n, 1), "ok"])],
    ["a gap", inTurn([acquire("a"), 1n], [append(1n, 2), "ok"])],
    ["a refusal without a reason", inTurn([acquire("a"), 1n], [append(1n, 1), "fenced"])],
  ])("%s is found", (_, history) => rejects(history));

  test("may start with a history", () => {
    const model = leaseModelFrom({ token: 2n ** 53n, held: true, head: 7 });
    expect(checkLinearizable(model, inTurn([append(2n ** 53n, 8), "ok"], [takeover("b"), 2n ** 53n + 1n])).ok).toBe(
      true,
    );
  });
});

describe("overlapping operations", () => {
  const overlap = (output: LeaseOutput, readAt: number): Op[] => [
    { call: 0, ret: 1, input: acquire("a"), output: 1n },
    { call: 2, ret: 9, input: append(1n, 1), output: "ok" },
    { call: readAt, ret: readAt + 1, input: read, output },
  ];

  test("may take effect in either order, but only between call and return", () => {
    accepts(overlap({ token: 1n, head: 0 }, 4));
    accepts(overlap({ token: 1n, head: 1 }, 4));
    rejects(overlap({ token: 1n, head: 0 }, 10));
    accepts(overlap({ token: 1n, head: 0 }, 9)); // they touch: concurrent
  });

  test("must agree with each other", () => {
    const reads = (first: number, second: number): Op[] => [
      ...overlap({ token: 1n, head: first }, 3),
      { call: 5, ret: 6, input: read, output: { token: 1n, head: second } },
    ];
    accepts(reads(0, 1));
    rejects(reads(1, 0));
  });
});

describe("operations of unknown outcome", () => {
  const held: [LeaseInput, LeaseOutput] = [acquire("a"), 1n];

  test("may have taken effect at once, later or never", () => {
    accepts(inTurn(held, [append(1n, 1), "?"], [read, { token: 1n, head: 0 }]));
    accepts(inTurn(held, [append(1n, 1), "?"], [read, { token: 1n, head: 1 }]));
    accepts(inTurn(held, [append(1n, 1), "?"], [read, { token: 1n, head: 0 }], [read, { token: 1n, head: 1 }]));
    accepts(inTurn(held, [takeover("b"), "?"], [append(1n, 1), "ok"], [append(1n, 2), "fenced"]));
  });

  test("take effect at most once, after their call, and are fenced too", () => {
    rejects(inTurn(held, [append(1n, 1), "?"], [read, { token: 1n, head: 2 }]));
    rejects(inTurn(held, [read, { token: 1n, head: 1 }], [append(1n, 1), "?"]));
    rejects(inTurn(held, [append(1n, 1), "?"], [read, { token: 1n, head: 1 }], [read, { token: 1n, head: 0 }]));
    rejects(
      inTurn(
        held,
        [append(1n, 1), "?"],
        [takeover("b"), 2n],
        [read, { token: 2n, head: 0 }],
        [read, { token: 2n, head: 1 }],
      ),
    );
  });
});

describe("histories of five clients", () => {
  test("of 1000 operations are checked in well under a second", () => {
    for (const unknown of [0, 0.02, 0.1]) {
      const { history } = record({ seed: 1, operations: 1000, unknown });
      const started = performance.now();
      accepts(history);
      expect(performance.now() - started).toBeLessThan(500);
    }
  });

  test("are accepted when correct, and contain every kind of result", () => {
    const kinds = new Set<string>();
    for (let seed = 0; seed < 60; seed++) {
      const { history } = record({ seed, operations: 200, unknown: 0.03 });
      accepts(history);
      for (const { input, output } of history)
        kinds.add(`${input.op} ${typeof output === "string" ? output : typeof output}`);
    }
    expect([...kinds].sort()).toEqual([
      "acquire bigint",
      "acquire refused",
      "acquire undefined",
      "append fenced",
      "append not_head",
      "append ok",
      "append undefined",
      "read object",
      "read undefined",
      "release fenced",
      "release ok",
      "release undefined",
      "takeover bigint",
      "takeover undefined",
    ]);
  });

  test.each<Bug>(["unfenced append", "token twice", "lost append"])("%s is found", (bug) => {
    const seeds = Array.from({ length: 30 }, (_, seed) => record({ seed, operations: 200, unknown: 0.01, bug }));
    const bugShown = seeds.filter((run) => run.bugShown);
    const found = bugShown.filter((run) => !checkLinearizable(leaseModel, run.history).ok);
    expect(bugShown.length).toBeGreaterThan(25);
    expect(found.length).toBe(bugShown.length);
  });
});

describe("the checker", () => {
  test("names the operation that cannot be placed", () => {
    const verdict = checkLinearizable(leaseModel, inTurn([acquire("a"), 1n], [append(1n, 1), "fenced"]));
    expect(verdict).toEqual({
      ok: false,
      reason:
        'no legal order places operation 1, {"op":"append","token":"1","seq":1} → "fenced" (called 1, returned 1.5); ' +
        "the longest one has 1 of 2 operations and ends in state 1+0",
    });
  });

  test("throws instead of returning a verdict when it gives up", () => {
    const { history } = record({ seed: 1, operations: 200, unknown: 0 });
    expect(() => checkLinearizable(leaseModel, history, 50)).toThrow(UndecidedError);
  });

  test("accepts the empty history, and throws when a return precedes its call", () => {
    accepts([]);
    expect(() => checkLinearizable(leaseModel, [{ call: 2, ret: 1, input: read }])).toThrow(RangeError);
    expect(() => checkLinearizable(leaseModel, [{ call: 2, ret: Number.NaN, input: read }])).toThrow(RangeError);
  });
});

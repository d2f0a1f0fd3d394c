import { expect, test } from "vitest";
import { explore, type Model, only, type Step, spend, TooManyStates } from "./explore.ts";

/** Numbers from 0: +1, +2, and a fault that adds ten. `trap` has no further step. */
function numbers(options: { readonly top: number; readonly trap?: number; readonly ban?: number }): Model<number> {
  return {
    initial: 0,
    steps(n) {
      const step = (does: string, to: number, fault = false): Step<number>[] =>
        to <= options.top ? [{ by: "n", does, to, fault }] : [];
      return n === options.trap
        ? []
        : [...step("adds 1", n + 1), ...step("adds 2", n + 2), ...step("jumps", n + 10, true)];
    },
    key: String,
    show: String,
    invariants: { "is not banned": (n) => n !== options.ban, "is small": (n) => n < 1000 },
    goal: { name: "the top can be reached", reached: (n) => n === options.top },
  };
}

test("visits every state once", () => {
  const verdict = explore(numbers({ top: 20 }));
  expect(verdict).toMatchObject({ violated: null, states: 21, path: [], depth: 6 });
  expect([...verdict.fired]).toEqual(["adds 1", "adds 2", "jumps"]);
});

test("names the broken invariant and a shortest path to it", () => {
  const verdict = explore(numbers({ top: 20, ban: 13 }));
  expect(verdict.violated).toBe("is not banned");
  expect(verdict.path).toHaveLength(3);
  expect(verdict.path).toContain("n jumps");
  expect(verdict.trace.split("\n").at(-1)).toMatch(/^ 3\. n \S+ .* 13$/);
});

test("checks the initial state", () => {
  expect(explore(numbers({ top: 3, ban: 0 }))).toMatchObject({ violated: "is not banned", path: [] });
});

test("a state without a path to the goal violates liveness", () => {
  const verdict = explore(numbers({ top: 20, trap: 19 }));
  expect(verdict.violated).toBe("the top can be reached");
  expect(verdict.trace.split("\n").at(-1)).toMatch(/ 19$/);
});

test("liveness does not rely on faults", () => {
  const onlyByFault: Model<number> = {
    ...numbers({ top: 10 }),
    steps: (n) => (n === 0 ? [{ by: "n", does: "jumps", to: 10, fault: true }] : []),
  };
  expect(explore(onlyByFault)).toMatchObject({ violated: "the top can be reached", path: [] });
});

test("too many states are an error", () => {
  expect(explore(numbers({ top: 20 }), 21).violated).toBeNull();
  expect(() => explore(numbers({ top: 20 }), 20)).toThrow(TooManyStates);
});

test("merges states with the same key", () => {
  const parity = {
    ...numbers({ top: 20 }),
    key: (n: number) => String(n % 2),
    goal: { name: "-", reached: () => true },
  };
  expect(explore(parity).states).toBe(2);
});

test("selects one invariant by name", () => {
  expect(explore(only(numbers({ top: 20, ban: 13 }), "is small")).violated).toBeNull();
  expect(() => only(numbers({ top: 20 }), "is tall")).toThrow('no invariant "is tall"');
});

test("spends a ration one by one", () => {
  expect(spend({ crash: 1, lost: 2 }, "crash")).toEqual({ crash: 0, lost: 2 });
  expect(spend({ crash: 0, lost: 2 }, "crash")).toBeNull();
  expect(spend({ crash: 0, lost: 2 }, undefined)).toEqual({ crash: 0, lost: 2 });
});

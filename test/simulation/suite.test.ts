import { strict as assert } from "node:assert";
import { describe, it } from "vitest";
import { invariants } from "../../simulation/invariants/index.ts";
import { minimise } from "../../simulation/minimise.ts";
import { type Plan, planOf } from "../../simulation/plan.ts";
import { neverJudged, neverReached, simulateSeed, simulateSeeds } from "../../simulation/suite.ts";
import { calm } from "./calm.ts";

describe("a suite of seeds", () => {
  it("adds up what its seeds judged, and lists what none judged or reached", async () => {
    const [one, two, both] = [await simulateSeed(1), await simulateSeed(2), await simulateSeeds([1, 2])];
    assert.deepEqual(both.failures, []);
    const names = Object.keys(invariants);
    assert.deepEqual(Object.keys(both.judged), names);
    for (const name of names) assert.equal(both.judged[name], one.judged[name]! + two.judged[name]!, name);
    const idle = neverJudged(both);
    assert.ok(idle.length > 0 && idle.length < names.length);
    assert.deepEqual(
      idle,
      names.filter((name) => both.judged[name] === 0),
    );
    assert.ok(neverReached(both).length > 0);
  });

  it("minimises a failing plan", async () => {
    const fault = planOf("some").faults[0] ?? {
      replica: 0,
      at: "effect",
      n: 1,
      edge: "after",
      kind: "crash",
      forMs: 5,
    };
    const plan: Plan = {
      ...calm,
      faults: [
        { ...fault, n: 1 },
        { ...fault, n: 2 },
      ],
    };
    const smallest = await minimise(plan, async ({ faults }) => faults.some(({ n }) => n === 2));
    assert.deepEqual(
      smallest.faults.map(({ n }) => n),
      [2],
    );
    assert.deepEqual([smallest.values, smallest.schedules, smallest.signals, smallest.actions], [[], [], [], []]);
    assert.equal(smallest.singleton, undefined);
  });
});

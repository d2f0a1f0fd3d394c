import { describe, expect, it } from "vitest";
import { bestOf, medianRatio, type Rounds, worst } from "../../bench/queues/figures.ts";
import { queuePlanOf, smallest } from "../../bench/queues/plan.ts";
import { figureNames, measureQueues } from "../../bench/queues.ts";

it("the queue benchmark has every figure, and no slot is exceeded or leaked after kill -9", async () => {
  const parts = ["drain", "depth", "kill"] as const; // the others are made of the same pieces
  const result = await measureQueues({ only: ["tape-sqlite"], parts, rounds: 1, sizes: smallest });
  expect(Object.keys(result)).toEqual([...figureNames, "beside", "notRun"]);
  expect(result).toMatchObject({ overLimit: 0, leaked: 0, beside: { kill: { kills: 1 } } });
  expect(result.depth).toBeGreaterThan(0);
  // What was not measured is null: ratios to peers, and parts that were left out.
  expect(result).toMatchObject({ drainPostgres: null, drainSqlite: null, fair: null, startP99Ms: null });
  expect(result.beside).toMatchObject({ drain: { drainedPerSecond: { "tape-sqlite": expect.any(Number) } } });
});

describe("figures of the queue benchmark", () => {
  const rounds: Rounds = new Map([
    ["dbos", [100, 900, 300]],
    ["pg-boss", [500, 400, 200]],
  ]);

  it("compare ours with the best peer of the same round", () => {
    expect(bestOf(rounds, ["dbos", "pg-boss", "bullmq"])).toEqual([500, 900, 300]);
    expect(medianRatio([1_000, 900, 900], [500, 900, 300])).toBe(2);
  });

  it("are absent where a side was not measured", () => {
    expect(medianRatio(undefined, [1])).toBeNull();
    expect(worst("max", [null, null])).toBeNull();
    expect(worst("max", [null, 1.2])).toBe(1.2);
  });

  it("come from known systems and parts alone", () => {
    expect(queuePlanOf(["--only", "dbos", "--parts", "drain"])).toMatchObject({ only: ["dbos"], parts: ["drain"] });
    expect(queuePlanOf(["--full"]).sizes.depth.runs).toBe(1_000_000);
    expect(() => queuePlanOf(["--only", "hatchet"])).toThrow("hatchet");
  });
});

import { strict as assert } from "node:assert";
import { describe, it } from "vitest";
import { brokenInvariants } from "../../simulation/invariants/index.ts";
import { type Plan, planOf } from "../../simulation/plan.ts";
import { rightClock } from "../../simulation/plan-faults.ts";
import type { PlannedRun } from "../../simulation/plan-runs.ts";
import type { Op } from "../../simulation/program.ts";
import { simulate } from "../../simulation/simulate.ts";

/**
 * A plan without faults, to which each test adds what a seed once needed to fail. Seeds themselves change their meaning
 * when plans are drawn differently.
 */
const quiet: Plan = {
  ...planOf(1),
  replicas: 1,
  remote: [false],
  clocks: [rightClock],
  travelMs: 0,
  hintLoss: 0,
  signals: [],
  talk: undefined,
  schedules: [],
  values: [],
  singleton: undefined,
  actions: [],
  faults: [],
  rewind: undefined,
  healAtMs: 20_000,
  heals: true,
  resolver: false,
};
const runOf = (ops: readonly Op[]): PlannedRun => ({
  id: "run-0",
  workflow: "once",
  program: { ops, attempts: 1 },
  atMs: 10,
  cancelAtMs: undefined,
  usd: 10,
  again: undefined,
});
const spend = (ms: number): Op[] => [{ op: "spend", usd: 4, cost: 2, ms }];

describe("regressions found by seeds", () => {
  it("forks a run that released reservations at its end", async () => {
    const evidence = await simulate({
      ...quiet,
      // The third reserves more than is left, and the run fails with two reservations open.
      runs: [runOf([{ op: "all", branches: [spend(900), spend(2_900), spend(1_500)] }])],
      actions: [{ atMs: 6_000, what: "fork", run: "run-0" }],
    });
    assert.deepEqual(brokenInvariants(evidence), []);
    const ended = evidence.runs.map(({ id, status }) => [id, status]);
    assert.deepEqual(ended, [
      ["run-0 as operator 0", "COMPLETED"],
      ["run-0", "FAILED"],
    ]);
  });
});

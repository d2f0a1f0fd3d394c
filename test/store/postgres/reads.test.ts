import { afterAll, beforeAll, expect, inject, it } from "vitest";
import { defaultLimits } from "../../../src/model/limits.ts";
import { awaitPlan, type Plan } from "../../../src/store/sql/plan.ts";
import { runsPlan } from "../../../src/store/sql/plans/lists.ts";
import { runPlanById } from "../../../src/store/sql/plans/reads.ts";
import { tenant } from "../../../testkit/conformance/frame.ts";
import { begin, ended } from "../../../testkit/conformance/holder.ts";
import { type Scene, sceneOn } from "./scene.ts";

/** The statements of a read share no snapshot: a run may be deleted between two of them. */
let scene: Scene;

beforeAll(async () => {
  scene = await sceneOn(inject("postgres18"));
});
afterAll(() => scene.close());

async function prunedMeanwhile<T>(plan: (id: string) => Plan<T>): Promise<T> {
  const run = await begin(scene.store);
  await run.write(ended("COMPLETED"));
  const hand = await scene.hand();
  return awaitPlan(plan(run.id), async (call) => {
    if (call.sql.startsWith("lease")) await scene.store.intake.prune(tenant, Number.MAX_SAFE_INTEGER, 10);
    return hand.perform(call);
  });
}

it("a list leaves out a run that is deleted during the read", async () => {
  expect(await prunedMeanwhile(() => runsPlan(tenant, {}, defaultLimits))).toEqual([]);
});

it("a run that is deleted during the read is absent", async () => {
  expect(await prunedMeanwhile((id) => runPlanById(tenant, id))).toBeUndefined();
});

import { describe, expect, it } from "vitest";
import type { Plan } from "../../src/store/sql/plan.ts";
import { agendaPlan } from "../../src/store/sql/plans/backlogs.ts";

/** The statements of a plan on a store that answers none with a row. */
function statementsOf(plan: Plan<unknown>): string[] {
  const names: string[] = [];
  for (let step = plan.next(); step.done !== true; step = plan.next({ rows: [], count: 0 })) names.push(step.value.sql);
  return names;
}

describe("the agenda of one tenant", () => {
  it.each([
    ["every workflow", undefined],
    ["some workflows", ["w"]],
    ["none", []],
  ])("is one statement for %s: an idle process sends no other", (_of, workflows) => {
    expect(statementsOf(agendaPlan("acme", workflows, ["mail"]))).toEqual(["agenda"]);
  });
});

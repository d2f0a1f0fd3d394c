import { describe, expect, it } from "vitest";
import { memoryLedger } from "../../examples/ledger.ts";
import { crashAtEveryBoundary } from "../../src/testing/kit/crash.ts";
import { cases, happened } from "./cases.ts";

/** Acts that must not be there twice, and what an uncrashed run does besides: the same world, whatever dies. */
describe("every example, with its process crashed at every boundary", { timeout: 120_000 }, () => {
  // One that does nothing when all is well has nothing to lose.
  const acting = cases.filter(({ world }) => world.length > 0);
  it.each(acting.map((case_) => [case_.name, case_] as const))("%s", async (_, case_) => {
    const world = memoryLedger();
    const { workflow, runner } = case_.build(world);
    const expected = case_.world.map((line) => line.replace(/^mail .*/, "mail"));
    const report = await crashAtEveryBoundary({
      workflow,
      input: case_.input as never,
      runner,
      signals: case_.signals ?? [],
      ...(case_.budget && { start: { budget: case_.budget } }),
      fresh: () => world.clear(),
      modes: ["crash"],
      check: ({ run }) => {
        expect(run.status).toBe(case_.status);
        expect(
          happened(world)
            .map((line) => line.replace(/^mail .*/, "mail"))
            .sort(),
        ).toEqual([...expected].sort());
      },
    });
    expect(report.struck).toBeGreaterThan(10);
  });
});

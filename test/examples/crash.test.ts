import { describe, expect, it } from "vitest";
import { memoryLedger } from "../../examples/ledger.ts";
import { crashAtEveryBoundary } from "../../testkit/kit/crash.ts";
import { isSampled, sampleDay } from "../sample.ts";
import { cases, happened } from "./cases.ts";
import { rounds, survives } from "./survival.ts";

/**
 * Crashed at one boundary in three, and paused past the lease at one in seven. The sample differs by example and by day; the
 * simulation covers all boundaries, thousands of times. TAPE_TEST_EVERY_BOUNDARY=1 visits them all.
 */
const strides = { crash: 3, zombie: 7 };
const title = `every example survives crashes on SQLite (sample of ${sampleDay})`;

describe(title, { timeout: 120_000 }, () => {
  it.each(rounds.map((round, index) => [...round, index] as const))("%s: %s", async (mode, _, case_, index) => {
    const stride = strides[mode];
    const report = await survives(case_, mode, { only: (__, k) => isSampled(k + index, stride) });
    expect(report.rounds).toBeGreaterThanOrEqual(Math.floor(report.boundaries.length / stride));
    expect(report.reached).toBe(report.rounds);
  });
});

it("reverses a surplus wire that a zombie sent too late", async () => {
  const treasury = cases.find(({ name }) => name === "treasury")!;
  const world = memoryLedger();
  const { workflow, runner } = treasury.build(world);
  const report = await crashAtEveryBoundary({
    workflow,
    input: treasury.input as never,
    runner,
    signals: treasury.signals ?? [],
    fresh: () => world.clear(),
    modes: ["zombie"],
    leaseTtlMs: 40_000, // it is paused for 44 s: the start window, the wire's timeout and its settle delay end after 40
    only: (boundary) => boundary === "before effect bank.wire #1",
    check: ({ run, reached }) => {
      expect(run.status).toBe("COMPLETED");
      const [wire, book] = treasury.world;
      const late = [wire, "reverse sweep-2026-11-15"];
      expect(happened(world)).toEqual(reached ? [wire, book, ...late] : [wire, book]);
    },
  });
  expect([report.rounds, report.reached]).toEqual([1, 1]);
});

import { expect } from "vitest";
import { memoryLedger } from "../../examples/ledger.ts";
import { type CrashReport, crashAtEveryBoundary } from "../../testkit/kit/crash.ts";
import type { CrashMode, CrashOptions } from "../../testkit/kit/crash-options.ts";
import { openBlankStore } from "../blank-database.ts";
import { type Case, cases, happened } from "./cases.ts";

type Choice = Pick<CrashOptions<never, unknown>, "openStore" | "only">;

/**
 * A zombie is paused for 11 s: longer than its lease, but shorter than every effect of the examples allows for a late
 * sender (`timeout` plus `settleDelay`, at least 30 s). A longer pause may send too late, which the last test of
 * crash.test.ts shows.
 */
const leaseTtlMs = 10_000;

/** The world is the same, entry by entry, wherever the process dies. */
export async function survives(case_: Case, mode: CrashMode, choice: Choice = {}): Promise<CrashReport> {
  const world = memoryLedger();
  const { workflow, runner } = case_.build(world);
  const report = await crashAtEveryBoundary({
    workflow,
    input: case_.input as never,
    runner,
    signals: case_.signals ?? [],
    ...(case_.budget && { start: { budget: case_.budget } }),
    fresh: () => world.clear(),
    modes: [mode],
    leaseTtlMs,
    openStore: openBlankStore,
    ...choice,
    check: ({ run }) => {
      expect(run.status).toBe(case_.status);
      expect(happened(world).map(nameless).sort()).toEqual(case_.world.map(nameless).sort());
    },
  });
  expect(report.boundaries.length).toBeGreaterThan(10);
  return report;
}

/** One of the examples writes the id of its run into its world. */
const nameless = (line: string): string => line.replace(/^mail .*/, "mail");

const modes = ["crash", "zombie"] as const;
export const rounds = cases.flatMap((case_) => modes.map((mode) => [mode, case_.name, case_] as const));

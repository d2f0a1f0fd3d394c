import { strict as assert } from "node:assert";
import { describe, it } from "vitest";
import { simulateSeeds } from "../../src/testing/simulation/suite.ts";

/** Enough to reach every mark of coverage.ts; more with `npm run sim`. */
const seeds = 200;

describe("the engine, simulated", () => {
  it(`keeps every invariant in ${seeds} seeds, and reaches every state worth reaching`, {
    timeout: 300_000,
  }, async () => {
    const report = await simulateSeeds(Array.from({ length: seeds }, (_, k) => k + 1));
    assert.equal(report.failures.join("\n\n"), "");
    const missed = Object.entries(report.coverage).filter(([, count]) => count === 0);
    assert.deepEqual(missed, [], "these were never reached");
  });
});

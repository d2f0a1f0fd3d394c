import { expect, it } from "vitest";
import { seededRandom } from "../../src/base/random.ts";
import { killedMovers, outage } from "../../tools/chaos/shards/rounds.ts";

it("a killed shard stops its own tenants only; nothing is lost or happens twice", { timeout: 300_000 }, async () => {
  const { ratio, runs, faults } = await outage(6_000);
  expect(faults).toEqual([]);
  expect(runs).toBeGreaterThan(50);
  expect(ratio).toBeGreaterThanOrEqual(0.9);
});

it("[INV-25] movers that are killed lose nothing, pay nothing twice, and leave no run in two places", {
  timeout: 600_000,
}, async () => {
  const random = seededRandom("moves");
  const { kills, runs, faults } = await killedMovers(4, () => random.float());
  expect(faults).toEqual([]);
  expect(runs).toBeGreaterThan(50);
  expect(kills).toBeGreaterThan(0);
});

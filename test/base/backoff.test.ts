import { expect, it } from "vitest";
import { backoffMs } from "../../src/base/backoff.ts";
import { seededRandom } from "../../src/base/random.ts";

const random = seededRandom("backoff");

it("a back-off grows to its cap, and is never shorter than half of what it says", () => {
  const options = { baseMs: 100, capMs: 1_000, factor: 3 };
  for (const [attempt, nominal] of [100, 300, 900, 1_000, 1_000].entries()) {
    const ms = backoffMs(attempt + 1, options, random);
    expect(ms).toBeGreaterThanOrEqual(nominal / 2);
    expect(ms).toBeLessThanOrEqual(nominal);
  }
});

it.each<[string, number, object]>([
  ["a factor of NaN", 2, { baseMs: 100, capMs: 1_000, factor: Number.NaN }],
  ["a negative factor", 2, { baseMs: 100, capMs: 1_000, factor: -1 }],
  ["a factor in letters", 2, { baseMs: 100, capMs: 1_000, factor: "twice" }],
  ["a cap of NaN", 1, { baseMs: 100, capMs: Number.NaN }],
  ["a base of NaN", 1, { baseMs: Number.NaN, capMs: 1_000 }],
  ["an attempt of NaN", Number.NaN, { baseMs: 100, capMs: 1_000 }],
])("%s ends in a long pause, not in none", (_, attempt, options) => {
  const ms = backoffMs(attempt, options as never, random);
  expect(ms).toBeGreaterThanOrEqual(30_000);
  expect(ms).toBeLessThanOrEqual(60_000);
});

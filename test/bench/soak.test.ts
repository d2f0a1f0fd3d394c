import { expect, it } from "vitest";
import { type Bound, judge, table } from "../../tools/soak/verdict.ts";

const everyMs = 5_000;
const over = (minutes: number, value: (k: number) => number, bound: Bound) =>
  judge({ name: "it", unit: "MB", values: Array.from({ length: minutes * 12 }, (_, k) => value(k)), bound }, everyMs);

it("a leak drifts", () => {
  const leaking = over(10, (k) => 100 + k, { up: 1.15, slack: 20 });
  expect(leaking.verdict).toBe("DRIFTS");
  expect(leaking.perHour).toBe(720);
});

it("noise, a warm-up and a single spike do not", () => {
  const noisy = over(10, (k) => (k < 9 ? k * 20 : 150 + (k % 7)) + (k === 100 ? 5_000 : 0), { up: 1.15, slack: 5 });
  expect(noisy.verdict).toBe("steady");
});

it("less work in the same time drifts", () => {
  expect(over(10, (k) => 500 - 3 * k, { down: 0.8, slack: 10 }).verdict).toBe("DRIFTS");
  expect(over(10, (k) => 500 - (k % 20), { down: 0.8, slack: 10 }).verdict).toBe("steady");
});

it("what grows by design is shown and not judged", () => {
  const grown = over(10, (k) => k * 1_000, "grows");
  expect(grown.verdict).toBe("grows by design");
  expect(table([grown])).toContain("| it, MB |");
});

import { describe, expect, it, vi } from "vitest";
import { dayOf, isSampled, sampleDay, sampleOf } from "./sample.ts";

const days = Array.from({ length: 40 }, (_, k) => new Date(Date.UTC(2026, 10, 16 + k)).toISOString().slice(0, 10));
const indexes = Array.from({ length: 100 }, (_, k) => k);

describe("samples", () => {
  it("are of today or of the given day, and an invalid day is rejected", () => {
    const now = new Date("2026-11-16T23:59:59.999Z");
    expect(dayOf({}, now)).toBe("2026-11-16");
    expect(dayOf({ TAPE_TEST_DAY: "" }, now)).toBe("2026-11-16");
    expect(dayOf({ TAPE_TEST_DAY: "2025-02-28" }, now)).toBe("2025-02-28");
    for (const day of ["today", "2026-13-01", "2026-11-16T00:00:00Z"]) {
      expect(() => dayOf({ TAPE_TEST_DAY: day }, now)).toThrow(/TAPE_TEST_DAY/);
    }
  });

  it("are the same for one day, and cover everything once within `stride` days", () => {
    for (const stride of [2, 5, 8, 40]) {
      const taken = days.slice(0, stride).map((day) => indexes.filter((index) => isSampled(index, stride, day)));
      expect(taken.flat().sort((a, b) => a - b)).toEqual(indexes);
      for (const sample of taken) expect(sample.length).toBeGreaterThanOrEqual(Math.floor(indexes.length / stride));
    }
    expect(isSampled(3, 5)).toBe(isSampled(3, 5, sampleDay));
  });

  it("of few items still have one, a different one every day", () => {
    const few = ["a", "b", "c"];
    const taken = days.slice(0, 3).map((day) => sampleOf(few, 8, day));
    expect(taken.map(({ length }) => length)).toEqual([1, 1, 1]);
    expect(taken.flat().sort()).toEqual(few);
    expect(sampleOf([], 8, "2026-11-16")).toEqual([]);
    const many = days.slice(0, 8).map((day) => sampleOf(indexes, 8, day));
    expect(many.flat().sort((a, b) => a - b)).toEqual(indexes);
  });

  it("are everything when everything is requested", () => {
    vi.stubEnv("TAPE_TEST_EVERY_BOUNDARY", "1");
    try {
      expect(indexes.every((index) => isSampled(index, 40))).toBe(true);
      expect(sampleOf(indexes, 8)).toEqual(indexes);
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

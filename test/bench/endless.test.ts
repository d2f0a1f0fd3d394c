import { expect, it } from "vitest";
import { endlessParts, planOf } from "../../bench/endless.ts";

it("an unknown part is refused with the names of all", () => {
  expect(() => planOf("before,teapot", [])).toThrow(/teapot[\s\S]*before/);
  const usual = { stores: ["sqlite", "postgres"], small: false, sizes: {} };
  expect(planOf("before", ["--base", "abc"])).toEqual({ ...usual, parts: ["before"], base: "abc" });
  expect(planOf("prune", ["--runs", "20000", "--kills", "50"]).sizes).toEqual({ runs: 20_000, kills: 50 });
  expect(() => planOf("prune", ["--runs", "many"])).toThrow(/--runs/);
  expect(planOf("sqlite", ["--small"]).parts).toEqual(Object.keys(endlessParts));
});

it("no two parts of it have a figure of the same name", () => {
  const figures = Object.values(endlessParts).flatMap((part) => part.figures);
  expect(new Set(figures).size).toBe(figures.length);
});

it("has the figures by which runs without end are judged", () => {
  const figures = Object.values(endlessParts).flatMap((part) => part.figures);
  expect(figures).toEqual(expect.arrayContaining(["wakeRatio", "labelP99Ms", "pruneRunsPerSecond", "mapRatio"]));
});

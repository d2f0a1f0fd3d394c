import { expect, it } from "vitest";
import { endlessParts, planOf } from "../../bench/endless.ts";

it("an unknown part is refused with the names of all", () => {
  expect(() => planOf("before,teapot", [])).toThrow(/teapot[\s\S]*before/);
  const usual = { stores: ["sqlite", "postgres"], small: false };
  expect(planOf("before", ["--base", "abc"])).toEqual({ ...usual, parts: ["before"], base: "abc" });
  expect(planOf("sqlite", ["--small"]).parts).toEqual(Object.keys(endlessParts));
});

it("no two parts of it have a figure of the same name", () => {
  const figures = Object.values(endlessParts).flatMap((part) => part.figures);
  expect(new Set(figures).size).toBe(figures.length);
});

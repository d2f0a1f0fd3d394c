import { expect, expectTypeOf, it } from "vitest";
import { defined } from "../../src/base/defined.ts";

const maybe = (value: string | undefined): string | undefined => value;

it("drops the fields that are undefined and keeps the others in order", () => {
  const kept = defined({ a: 1, b: maybe(undefined), c: null, d: maybe("x"), e: false });
  expect(Object.entries(kept)).toEqual([
    ["a", 1],
    ["c", null],
    ["d", "x"],
    ["e", false],
  ]);
  expectTypeOf(kept).toExtend<{ a: number; b?: string; c: null; d?: string; e: boolean }>();
});

import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { longest } from "./order.ts";

it("the files that start first exist", () => {
  expect(longest.length).toBeGreaterThan(0);
  expect(longest.filter((file) => !existsSync(new URL(`../${file}`, import.meta.url)))).toEqual([]);
});

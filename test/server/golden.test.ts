import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { routes } from "../../src/protocol/contract.ts";
import { exchanged, goldenFile } from "./golden.ts";

describe("the wire format (node test/server/golden-write.ts rewrites it)", () => {
  for (const { name } of routes) {
    it(name, async () => {
      expect(await exchanged(name)).toBe(readFileSync(goldenFile(name), "utf8"));
    });
  }

  it("has a fixture for every route, and for no other", () => {
    const files = readdirSync(new URL("./golden/", import.meta.url)).map((file) => file.replace(/\.http$/, ""));
    expect(files.toSorted()).toEqual(routes.map(({ name }) => name).toSorted());
  });
});

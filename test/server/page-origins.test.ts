import { describe, expect, it } from "vitest";
import { pageOrigins } from "../../src/server/page-origins.ts";

describe("origins of pages", () => {
  it("are separated by commas", () => {
    expect([...pageOrigins(" https://a.example,http://localhost:3000 ,")]).toEqual([
      "https://a.example",
      "http://localhost:3000",
    ]);
    expect(pageOrigins("").size).toBe(0);
  });

  it.each(["*", "https://*.example", "a.example", "https://a.example/", "https://a.example/path", "null", "file:///x"])(
    "are origins, not %s",
    (text) => {
      expect(() => pageOrigins(text)).toThrow(/is no origin/);
    },
  );

  it("are at most a hundred", () => {
    const many = Array.from({ length: 101 }, (_, k) => `https://a${k}.example`).join(",");
    expect(() => pageOrigins(many)).toThrow(/more than 100 origins/);
  });
});

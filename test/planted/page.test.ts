import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { bugs } from "./bugs/index.ts";
import { page, written } from "./page.ts";

describe("docs/planted-bugs.md", () => {
  it("has the bugs that are planted, each as it is", () => {
    const text = readFileSync(page, "utf8");
    expect(text, "run node test/planted/page.ts").toBe(written(text));
    for (const { name } of bugs) expect(text).toContain(`| ${name} |`);
  });
});
